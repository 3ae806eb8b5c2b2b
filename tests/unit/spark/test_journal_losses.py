"""What a query with a journal does about splits that are gone, and about an older journal."""

import shutil
from pathlib import Path

import pytest

from balanced_source.documents.report import SKIPPED_GAPS
from balanced_source.errors import FatalProblemError, ForeignJournalError, JournalError
from balanced_source_spark.journal_stores.folder import FolderJournal
from support.journal_query import JournalQuery, Make
from support.tapes import Shelf, TapeHalf, TapeSourceReader, shelf


def labelled() -> Shelf:
    world = shelf(length=4)
    world.labels = dict.fromkeys(world.lengths, "former")
    return world


def recreate(query: JournalQuery, name: str) -> None:
    """Another, longer tape has the name now."""
    query.half.shelf.labels[name] = "newer"
    query.half.shelf.lengths[name] = 9


@pytest.mark.parametrize("is_ending", [False, True])
def test_records_of_another_split_under_the_same_id_are_not_read_on(
    make: Make, *, is_ending: bool
) -> None:
    """The user accepts losses: the others are read on, and the loss is told."""
    query = make(TapeHalf(labelled(), knows_ends=True, skips=True))
    query.read_all()
    recreate(query, "tape-0")
    query.half.shelf.lengths["tape-1"] = 7
    if is_ending:
        query.planner.prepareForTriggerAvailableNow()
        while query.trigger():
            pass
    else:
        query.trigger_until(lambda: ("tape-1", 6) in query.records, "the other tape")
        query.trigger()

    assert query.records.total() == len(query.records) == 4 + 7 + 4
    assert [m for m in query.problems() if "deleted and created again" in m]
    assert [m for m in query.problems() if "continues without these records" in m]


def test_such_a_split_ends_the_query_of_a_user_who_does_not_accept_losses(make: Make) -> None:
    query = make(TapeHalf(labelled(), knows_ends=True))
    query.read_all()
    recreate(query, "tape-0")

    with pytest.raises(FatalProblemError, match=r"shelf/tape-0 \(from 4 on\): deleted and"):
        query.trigger()


@pytest.mark.parametrize("skips", [False, True])
def test_a_split_that_is_deleted_before_its_stop_is_told_of(make: Make, *, skips: bool) -> None:
    world = shelf(length=4)
    world.stops = {"tape-0": 10}
    query = make(TapeHalf(world, knows_ends=True, skips=skips))
    query.planner._ends._gone = 0.0
    query.read_all()
    world.thrown = {"tape-0"}
    what = r"shelf/tape-0 \(4 to 10\): deleted before being read to the end"

    if not skips:
        with pytest.raises(FatalProblemError, match=what):
            query.trigger_until(lambda: False, "the loss")
        return
    query.trigger_until(lambda: bool(query.problems()), "the loss")
    assert "tape-0 (4 to 10): deleted before being read" in query.problems()[0]
    world.lengths["tape-1"] = 6
    query.trigger_until(lambda: ("tape-1", 5) in query.records, "the other tape")


def test_a_split_that_was_read_to_its_end_may_be_replaced(make: Make) -> None:
    world = labelled()
    world.stops = {"tape-0": 4}
    query = make(TapeHalf(world, knows_ends=True))
    query.read_all()
    query.trigger()
    recreate(query, "tape-0")

    query.trigger()
    assert query.problems() == []


def crash_with_another_journal(query: JournalQuery, folder: Path) -> None:
    """The last micro-batch is delivered and not committed; the journal is a copy from before it."""
    query.trigger_until(lambda: len(query.offsets) > 3, "some micro-batches")
    shutil.copytree(folder, folder.with_name("copy"))
    query.trigger_until(lambda: len(query.offsets) > 6, "more micro-batches")
    query.committed -= 1
    query.planner.stop()
    shutil.rmtree(folder)


def test_an_older_journal_is_refused_before_a_replay_seals_other_ranges(
    make: Make, tmp_path: Path
) -> None:
    """Otherwise the sink gets other rows under the number of a micro-batch that it has."""
    query = make(max_records=1)
    crash_with_another_journal(query, tmp_path / "journal")
    (tmp_path / "copy").rename(tmp_path / "journal")

    with pytest.raises(ForeignJournalError, match="the journal is older than the Spark checkpoint"):
        query.start()
    assert len(query.attempts[query.committed]) == 1


def test_a_replay_waits_for_a_journal_that_does_not_answer_and_then_says_so(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = make(max_records=1)
    query.trigger_until(lambda: len(query.offsets) > 3, "some micro-batches")
    query.committed -= 1
    query.planner.stop()

    def silent(*_: object) -> None:
        raise JournalError("the store is away")

    monkeypatch.setattr(FolderJournal, "newest", silent)
    with pytest.raises(JournalError, match=r"the store is away\. No micro-batch begins"):
        query.start()


def test_gaps_that_tasks_have_skipped_are_counted_once_they_are_folded(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    gaps = {("shelf", "tape-0"): 1}
    monkeypatch.setattr(TapeSourceReader, "skipped_gaps", lambda _: gaps)
    query = make(TapeHalf(shelf(length=4)), parallelism=1)
    query.trigger()
    assert SKIPPED_GAPS not in query.told

    gaps = {}
    query.read_all()

    assert query.told[SKIPPED_GAPS] == 1
    query.restart()
    query.half.shelf.lengths["tape-0"] += 1
    query.read_all()
    assert SKIPPED_GAPS not in query.told, "since the driver started"
