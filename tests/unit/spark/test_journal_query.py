"""A query with a journal that dies at any step: every record once, and every replay the same."""

import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from balanced_source.documents import stream_offset
from balanced_source.documents.report import MILLIS_BEHIND
from balanced_source.errors import (
    ContractViolationError,
    ForeignCheckpointError,
    ForeignJournalError,
    InvalidSpecError,
    JournalError,
)
from balanced_source.host.journal import SealResult
from balanced_source_spark.journal_stores.folder import FolderJournal
from support.journal_query import Death, JournalQuery, Make
from support.tapes import SHELF, TapeHalf, TapeSource, shelf
from testbed.waiting import wait_until


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    limit=st.sampled_from([None, 1, 5]),
    knows_ends=st.booleans(),
    deaths=st.lists(st.sampled_from([None, *Death]), min_size=2, max_size=8),
    rescales=st.lists(st.integers(min_value=1, max_value=4), max_size=3),
)
def test_every_record_is_delivered_once_through_deaths_at_any_step(
    tmp_path_factory: pytest.TempPathFactory,
    *,
    limit: int | None,
    knows_ends: bool,
    deaths: list[Death | None],
    rescales: list[int],
) -> None:
    """With and without limits and known ends, rescaled, growing, and with new tapes."""
    half = TapeHalf(shelf(), knows_ends=knows_ends)
    query = JournalQuery(tmp_path_factory.mktemp("j") / "journal", half, max_records=limit)
    try:
        for number, death in enumerate(deaths):
            query.trigger(die=death)
            half.shelf.lengths["tape-1"] += 3
            half.shelf.lengths.setdefault(f"new-{number % 2}", 4)
            if number < len(rescales):
                query.parallelism = rescales[number]
                query.channel.rescale(rescales[number])
        query.read_all()
    finally:
        query.close()
    assert all(rows == again[0] for again in query.attempts.values() for rows in again), (
        "the same at each replay"
    )


def test_a_first_micro_batch_that_spark_has_not_logged_is_refused_before_it_is_read(
    make: Make, tmp_path: Path
) -> None:
    """Asynchronous progress tracking would plan the micro-batch anew after a failure."""
    query = make()
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "0").write_text('v1\n{}\n{"another": "offset"}')

    with pytest.raises(InvalidSpecError, match="asyncProgressTrackingEnabled: must not be used"):
        query.trigger_until(lambda: bool(query.records), "records that nobody may read")
    assert not query.records


def test_a_replay_after_growth_matches_the_sink(make: Make) -> None:
    """The sink committed the micro-batch, the driver died, and there is more to read now."""
    query = make(max_records=None)
    query.trigger_until(lambda: bool(query.records), "the first records")
    query.trigger(die=None)
    query.half.shelf.lengths["tape-0"] += 5
    query.trigger(die=Death.DELIVERED)
    query.half.shelf.lengths["tape-0"] += 5

    query.read_all()

    assert any(len(again) > 1 for again in query.attempts.values())
    assert all(rows == again[0] for again in query.attempts.values() for rows in again)


def test_all_attempts_at_a_task_emit_what_the_first_has_sealed(make: Make) -> None:
    """Speculation, a second action in foreachBatch, and a zombie after the micro-batch."""
    query = make(max_records=None)
    query.trigger_until(lambda: bool(query.records), "the first records")
    number = query.committed - 1
    parts = query.partitions(number)
    first = [query.read(part) for part in parts]
    query.half.shelf.lengths["tape-0"] += 50

    assert [query.read(part) for part in parts] == first
    query.read_all()
    assert [query.read(part) for part in parts] == first, "a zombie"


def test_an_attempt_that_is_overtaken_drops_what_it_has_fetched(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another one seals less while this one fetches."""
    query = make(max_records=None)
    query.trigger_until(lambda: bool(query.records), "the first records")
    seal, part = FolderJournal.seal, query.partitions(query.committed - 1)[0]
    assert part.share is not None
    part.share = replace(part.share, key=part.share.key._replace(number=1000))
    rival: list[list[tuple[str, int]]] = []

    def late(self: FolderJournal, record: object) -> SealResult:
        monkeypatch.setattr(FolderJournal, "seal", seal)
        rival.append(query.read(part))
        query.half.shelf.lengths["tape-0"] += 5
        return seal(self, record)  # type: ignore[arg-type]

    monkeypatch.setattr(FolderJournal, "seal", late)
    assert query.read(part) == rival[0]
    assert rival[0], "the rival has sealed something"


def test_a_skipped_task_delivers_nothing_and_its_records_come_later(make: Make) -> None:
    """An action such as `take` leaves tasks out; the micro-batch commits all the same."""
    query = make(skips=True)
    for _ in range(5):
        query.trigger()
    assert not query.records

    query.skips = False
    query.read_all()


def test_reports_hold_delivered_positions(make: Make) -> None:
    """Not where the micro-batch began, which is what its offset says."""
    query = make()
    query.read_all()
    query.trigger()
    host = query.planner._runtime._host

    assert host is not None
    report = host.report(sequence=1)
    assert report is not None
    assert report.positions == {(SHELF, name): 12 for name in query.half.shelf.lengths}
    assert all(
        (position or 0) < 12
        for position in stream_offset.from_json(query.offsets[1]).positions.values()
    )


def test_a_program_can_change_the_number_of_readers(make: Make) -> None:
    """As in any query without an operator: by the control of its planner."""
    query = make()
    query.trigger_until(lambda: bool(query.records), "the first records")

    query.planner.__dict__["_control"] = SimpleNamespace(
        look=lambda: query.channel.rescale(3), close=lambda: None
    )
    query.trigger_until(lambda: query.last.parallelism == 3, "three readers")
    query.read_all()


def test_asynchronous_progress_is_refused_wherever_the_journal_is(make: Make) -> None:
    """By the second micro-batch of a query, and by the first one after a restart."""
    query = make()
    query.is_asynchronous = True
    assert query.trigger()
    with pytest.raises(InvalidSpecError, match="asyncProgressTrackingEnabled: must not be used"):
        query.trigger_until(lambda: len(query.offsets) > 2, "another micro-batch")

    query.is_asynchronous = False
    query.restart()
    query.trigger_until(lambda: len(query.offsets) > 3, "another micro-batch")
    query.is_asynchronous = True
    query.restart()
    with pytest.raises(InvalidSpecError, match="asyncProgressTrackingEnabled: must not be used"):
        query.trigger_until(lambda: False, "the refusal")


def test_a_store_that_does_not_answer_stops_new_micro_batches_and_says_so(
    make: Make, tmp_path: Path
) -> None:
    query = make()
    query.trigger_until(lambda: len(query.records) > 0, "the first records")
    (tmp_path / "journal").rename(tmp_path / "away")
    (tmp_path / "journal").touch()  # such as a mount that is gone

    assert not any(query.trigger() for _ in range(3))
    assert any(
        "No micro-batch begins until the journal answers" in text for text in query.problems()
    )

    (tmp_path / "journal").unlink()
    (tmp_path / "away").rename(tmp_path / "journal")
    query.read_all()
    assert query.problems() == []


def test_a_source_that_cannot_be_read_again_is_reported_as_at_least_once(make: Make) -> None:
    query = make(TapeHalf(shelf(), is_queue=True))
    query.read_all()
    assert [
        text for text in query.problems() if "connector tapes cannot read a split again" in text
    ]

    plain = make()
    plain.trigger()
    assert plain.problems() == []


def test_a_journal_that_is_elsewhere_is_refused(make: Make, tmp_path: Path) -> None:
    """No one knows what the last micro-batch delivered: reading on would repeat or lose records."""
    query = make()
    query.trigger_until(lambda: len(query.records) > 0, "the first records")
    shutil.rmtree(tmp_path / "journal")
    query.restart()

    with pytest.raises(
        ForeignJournalError, match="Set journalLocation to the place that the query had before"
    ):
        query.trigger()


def test_a_checkpoint_that_was_restored_begins_another_journal(make: Make) -> None:
    """Or its tasks would find records of micro-batches that other owners have read."""
    query = make(max_records=1)
    query.trigger_until(lambda: len(query.offsets) > 6, "some micro-batches")
    query.offsets, query.committed = query.offsets[:4], 4
    query.batches = {number: query.batches[number] for number in range(4)}
    name = query.last.journal
    query.restart()

    query.trigger()
    assert any("older than its journal" in text for text in query.problems())
    query.read_all()

    assert name is not None
    assert query.last.journal is not None
    assert query.last.journal.journal != name.journal


def test_a_checkpoint_whose_records_were_deleted_is_refused(make: Make) -> None:
    query = make(max_records=1, min_batches=3)
    query.trigger_until(lambda: len(query.offsets) > 8, "some micro-batches")
    query.offsets, query.committed = query.offsets[:4], 4
    query.restart()

    with pytest.raises(ForeignJournalError, match="whose records were deleted"):
        query.trigger()


def test_records_are_deleted_behind_the_retained_micro_batches_alone(make: Make) -> None:
    query = make(max_records=1, min_batches=5)
    query.half.shelf.lengths["tape-0"] = 40
    query.trigger_until(lambda: len(query.offsets) > 33, "some micro-batches")
    assert query.last.journal is not None
    newest = query.last.journal.number

    homes = [path for path in query.folder.iterdir() if path.is_dir()]
    numbers = {int(path.name.split("-")[0]) for path in homes[0].glob("[0-9]*")}
    assert min(numbers) > 1
    assert numbers >= set(range(newest - 5, newest + 1))


def test_an_empty_source_starts_no_micro_batch(make: Make) -> None:
    """With known ends; a source without them is asked in its interval."""
    query = make(TapeHalf(shelf(), knows_ends=True))
    query.read_all()
    wait = [query.trigger() for _ in range(20)]
    assert not any(wait[1:])

    query.half.shelf.lengths["tape-0"] += 1
    query.read_all()


def test_a_source_without_known_ends_is_polled_in_its_interval(make: Make) -> None:
    query = make(poll_interval=3600.0)
    query.read_all()
    assert not any([query.trigger() for _ in range(20)][2:]), "one looks for more, then it waits"


def test_splits_that_end_are_finished_and_the_query_with_them(make: Make) -> None:
    """Read up to their stops, though there is more; then a closing micro-batch, once per life."""
    world = shelf(length=12)
    world.stops = {"tape-0": 7, "tape-1": 12, "tape-2": 1}
    query = make(TapeHalf(world), source=TapeSource(is_bounded=True, discovery_interval=None))
    for _ in range(3):
        query.trigger_until(lambda: bool(query.offsets and query.last.closings), "the closing one")
        count = len(query.offsets)
        assert not any(query.trigger() for _ in range(5))
        query.restart()
        query.trigger_until(lambda count=count: len(query.offsets) > count, "one of the next life")

    assert query.records == Counter(
        {(name, n): 1 for name, stop in world.stops.items() for n in range(stop)}
    )


def test_a_reader_whose_positions_are_not_exact_is_refused(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It goes past the sealed end: records would come twice."""
    query = make(TapeHalf(shelf(), honours_stops=False), max_records=None)
    query.trigger_until(lambda: len(query.records) == 36, "all records")
    query.half.shelf.lengths["tape-0"] += 10
    with_rows = next(n for n, rows in query.batches.items() if rows)
    parts = query.partitions(with_rows)
    assert [sorted(query.read(part)) for part in parts], (
        "one record at a time ends where it was sealed"
    )

    monkeypatch.setattr("balanced_source_spark.journal.reading.Reading._settle_moved", _blind)
    with pytest.raises(ContractViolationError, match="positions are not exact"):
        query.read(next(part for part in parts if part.share is not None and part.share.starts))


def _blind(self: object) -> None:
    """Sees positions beyond what was sealed."""
    at: dict[object, int] = self._at  # type: ignore[attr-defined]
    at.update(dict.fromkeys(at, 10**6))


def test_a_sealed_range_that_is_gone_is_an_error_and_never_skipped(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = make(max_records=None)
    query.trigger_until(lambda: len(query.records) == 36, "all records")
    number = next(n for n, rows in query.batches.items() if rows)
    parts = query.partitions(number)
    monkeypatch.setattr("balanced_source_spark.journal.reading.STALL", 0.05)
    query.half.shelf.lengths = dict.fromkeys(query.half.shelf.lengths, 3)

    with pytest.raises(JournalError, match="the source does not have them any more"):
        query.read(parts[0])


def without_journal(offset: dict[str, object]) -> dict[str, object]:
    """What a release of the connector wrote that read ranges."""
    return stream_offset.to_json(replace(stream_offset.from_json(offset), journal=None))


def test_a_checkpoint_of_a_connector_that_read_ranges_gets_a_journal(make: Make) -> None:
    query = make()
    query.trigger_until(lambda: len(query.offsets) > 1, "some micro-batches")
    query.offsets = [without_journal(query.offsets[-1])]
    query.batches, query.committed = {}, 1
    begun = stream_offset.from_json(query.offsets[0]).positions
    query.restart()
    rest = {
        (name, n)
        for name in query.half.shelf.lengths
        for n in range(int(begun[SHELF, name] or 0), 12)
    }

    query.trigger_until(lambda: query.records.keys() >= rest, "what was not read")
    assert query.records == Counter(rest)


def test_an_unfinished_micro_batch_of_such_a_connector_is_refused(make: Make) -> None:
    """Its ranges are in its offsets, which a reader cannot be held to: they would be skipped."""
    query = make()
    query.trigger_until(lambda: len(query.offsets) > 1, "some micro-batches")

    with pytest.raises(
        ForeignCheckpointError, match="planned without a journal, and is not committed"
    ):
        query.planner.partitions(query.offsets[0], without_journal(query.offsets[-1]))


def test_a_micro_batch_without_splits_needs_no_journal(make: Make) -> None:
    """Spark logs the first offset as the end of its first micro-batch if none is assigned."""
    query = make()
    first = query.planner.initialOffset()

    assert query.planner.partitions(first, first) == []


def test_a_journal_is_made_once_while_there_is_nothing_to_read(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    create = FolderJournal.create
    monkeypatch.setattr(
        FolderJournal, "create", lambda self, name: (made.append(name), create(self, name))
    )
    query = make(TapeHalf(shelf()))
    query.planner._is_due = lambda *_: False  # type: ignore[method-assign]

    wait_until(lambda: (query.trigger(), made)[1], 20, "the journal", interval=0.01)
    for _ in range(20):
        query.trigger()
    assert len(made) == 1


def test_two_queries_with_one_checkpoint_are_reported(make: Make) -> None:
    query = make()
    query.trigger_until(lambda: len(query.records) == 36, "all records")
    number = next(n for n, rows in query.batches.items() if rows)
    offset = stream_offset.from_json(query.offsets[number])
    other = dict.fromkeys(offset.positions, 7)
    forged = stream_offset.to_json(replace(offset, positions=other))

    part = query.planner.partitions(query.offsets[number - 1], forged)[0]
    with pytest.raises(ContractViolationError, match="two queries use one Spark checkpoint"):
        query.read(part)  # type: ignore[arg-type]


@pytest.mark.scenario("P13")
def test_time_behind_is_reported_per_split_and_unknown_while_one_is_unknown(make: Make) -> None:
    """Three tapes with 12 records each, of which a micro-batch of one reader takes 10.

    (4, 4, 2).
    """
    half = TapeHalf(shelf())
    query = make(half, parallelism=1, max_records=10)

    def told() -> Any:
        return query.told.get("millisBehind", "nothing")

    query.trigger_until(lambda: bool(query.records), "the first micro-batch")
    query.trigger()
    assert told() == "nothing", "this source does not know any time"

    half.shelf.timed = {"tape-0", "tape-1"}
    query.trigger()
    query.trigger()
    assert told() is None, "tape-2 does not tell"

    half.shelf.timed |= {"tape-2"}
    half.shelf.lengths |= {"tape-1": 500}
    query.trigger()
    query.trigger()
    found = query.told
    worst = found["splitsBehind"][0]
    assert worst["split"] == ["shelf", "tape-1"]
    assert worst["millisBehind"] == found["millisBehind"] > 400_000
    assert {entry["millisBehind"] for entry in found["splitsBehind"][1:]} == {0}
    report = query.planner._runtime._progress.metrics()
    assert report[MILLIS_BEHIND] == found["millisBehind"]


@pytest.mark.parametrize("is_continued", [False, True])
def test_a_split_that_is_read_to_its_end_is_not_behind_unless_others_continue_it(
    make: Make, *, is_continued: bool
) -> None:
    """While a closed shard is held, its children are not read, and may have any records."""
    half = TapeHalf(shelf(2), is_continued=is_continued)
    half.shelf.timed, half.shelf.stops = {"tape-0", "tape-1"}, {"tape-0": 3}
    half.shelf.lengths |= {"tape-0": 3}
    query = make(half, parallelism=1)
    query.read_all()
    query.trigger()

    found = query.told

    assert found["millisBehind"] == (None if is_continued else 0)
    assert [entry["split"] for entry in found["splitsBehind"]] == [["shelf", "tape-1"]]


def test_records_of_all_micro_batches_in_the_offset_log_are_kept(make: Make) -> None:
    """Spark may retain more than the query knows, where the journal lies in the checkpoint."""
    query = make(max_records=1, min_batches=5)
    log = query.folder.parent / "offsets"
    log.mkdir()
    for number in range(30):
        (log / str(number)).touch()
    query.half.shelf.lengths["tape-0"] = 40
    query.trigger_until(lambda: len(query.offsets) > 33, "some micro-batches")
    assert query.last.journal is not None
    newest = query.last.journal.number

    homes = [path for path in query.folder.iterdir() if path.is_dir()]
    numbers = {int(path.name.split("-")[0]) for path in homes[0].glob("[0-9]*")}
    assert numbers >= set(range(newest - 30, newest + 1))
