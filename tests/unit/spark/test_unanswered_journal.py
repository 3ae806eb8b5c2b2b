"""A journal that does not answer, or a source that does not: what planning does meanwhile."""

from collections.abc import Collection, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from balanced_source.api import Problem, SplitId
from balanced_source.documents.journal import FetchLimits, JournalPoint, JournalRecord, RecordKey
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.errors import (
    ContractViolationError,
    DiscoveryError,
    JournalError,
    TransientDiscoveryError,
)
from balanced_source.host.ends import Mark, SplitEnd
from balanced_source.host.journaling import Share
from balanced_source_spark.contract.half import Query
from balanced_source_spark.contract.hooks import PlannerContext
from balanced_source_spark.journal import planner as planner_module
from balanced_source_spark.journal.folding import DELETE_EVERY, Folding
from balanced_source_spark.journal.task import JournalTaskReader
from balanced_source_spark.journal.task_context import TaskContext
from balanced_source_spark.journal_stores.folder import FolderJournal
from balanced_source_spark.partition import ReaderPartition
from balanced_source_spark.place import this_place
from support.journal_query import Make
from support.tapes import SHELF, Shelf, TapeEnds, TapeHalf, shelf

KEY = RecordKey("j", 1, 3)


def test_a_query_that_starts_again_waits_for_its_journal(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable(*_: object) -> None:
        raise JournalError("no route to the store")

    query = make()
    query.trigger_until(lambda: len(query.records) > 0, "the first records")
    with monkeypatch.context() as away:
        away.setattr(FolderJournal, "check", unreachable)
        query.restart()
        assert not any(query.trigger() for _ in range(3))
        assert query.problems() == [
            "no route to the store. No micro-batch begins until the journal answers"
        ]

    query.read_all()
    assert query.problems() == []


def test_a_first_micro_batch_waits_for_its_journal(make: Make) -> None:
    query = make()
    query.folder.touch()  # such as a mount that is not there yet

    query.trigger_until(lambda: bool(query.problems()), "the problem")

    assert query.offsets == []
    assert "No micro-batch begins until the journal answers" in query.problems()[0]
    query.folder.unlink()
    query.read_all()


def test_a_question_that_was_overtaken_is_answered_before_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer to the older question is never taken for that of the newer one."""
    journal, numbers, is_free = FolderJournal(tmp_path), {"a": 7, "b": 8}, [False]
    problems: list[Problem | None] = []
    for name in numbers:
        journal.create(name)

    def newest(_: FolderJournal, name: str) -> int:
        while not is_free[0]:
            pass
        return numbers[name]

    monkeypatch.setattr(FolderJournal, "newest", newest)
    folding = Folding(journal, min_batches=1, tell=problems.append, patience=0.01)
    assert folding.find("a") is None
    is_free[0] = True
    while (found := folding.find("b")) is None:
        pass
    folding.stop()

    assert (found, problems[-1]) == (8, None)


def closing(number: int) -> StreamOffset:
    return StreamOffset(journal=JournalPoint(journal="j", number=number))


def test_an_answer_that_was_lost_is_asked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal, problems, lost = FolderJournal(tmp_path), list[Problem | None](), [1, 1]
    journal.create("j")
    read = FolderJournal.read
    monkeypatch.setattr(
        FolderJournal, "read", lambda self, key: None if lost and lost.pop() else read(self, key)
    )
    folding = Folding(journal, min_batches=1, tell=problems.append)

    first, second = folding.close(closing(1)), folding.close(closing(1))
    folding.stop()

    assert first is None
    assert second == [JournalRecord(key=RecordKey("j", 1, 0))]
    assert problems[0] is not None
    assert problems[0].message.startswith("an answer of the journal was lost")
    assert folding.complaint == problems[0].message
    assert problems[1:] == [None]


@pytest.mark.parametrize(("kept", "below"), [(3, 2 * DELETE_EVERY - 4), (9, 2 * DELETE_EVERY - 9)])
def test_records_are_deleted_now_and_then_behind_those_that_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: int, below: int
) -> None:
    """The offset log has four micro-batches."""
    journal, deleted = FolderJournal(tmp_path), list[tuple[str, int]]()
    monkeypatch.setattr(FolderJournal, "logged_batches", lambda _: 4)
    monkeypatch.setattr(FolderJournal, "delete_below", lambda _, *what: deleted.append(what))
    journal.create("j")
    folding = Folding(journal, min_batches=kept, tell=lambda _: None)

    for number in range(DELETE_EVERY + 1, 3 * DELETE_EVERY):
        folding.close(closing(number))
    folding.stop()

    assert deleted == [("j", below)]


def test_a_task_with_a_share_needs_a_journal() -> None:
    reader = JournalTaskReader(TapeHalf(Shelf()), Query(client_id="c", read=None), "tapes")
    share = Share(key=KEY, parallelism=5, limits=FetchLimits(), starts={(SHELF, "a"): 0})
    part = ReaderPartition(subtask_id=3, ranges=(), settings={"tapes": {}}, share=share)

    with pytest.raises(ContractViolationError, match="a task has a share and no journal"):
        list(reader.read(part))


def test_a_task_is_where_its_process_is_and_wakes_once_when_something_is_there() -> None:
    context = TaskContext(Share(key=KEY, parallelism=5, limits=FetchLimits(), starts={}))
    assert (context.location, context.zone) == (this_place().host, this_place().zone)

    context.notify_available()
    context.wait(3600.0)

    assert not context._available.is_set(), "the next wait is for what comes later"


class PlannerClock:
    """A clock of the planner that tests move."""

    now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def test_a_query_that_ends_by_itself_fails_where_records_before_its_targets_are_gone(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits as long as option startTimeoutSeconds says, since something was read last."""
    clock = PlannerClock()
    monkeypatch.setattr(planner_module, "time", clock)
    query = make(TapeHalf(shelf(), knows_ends=True), max_records=None)
    query.planner.prepareForTriggerAvailableNow()
    query.half.shelf.lengths["tape-1"] = 4
    while query.trigger() and len(query.records) < 28:
        pass
    query.trigger()
    clock.now += query.options.start_timeout
    query.trigger()

    clock.now += 0.001
    with pytest.raises(
        DiscoveryError, match="split shelf/tape-1 stays at 4 for 5 s, and was to be read up to 12"
    ):
        query.trigger()


class MutableEnds(TapeEnds):
    """Does not answer while it is mute."""

    is_mute = False

    def ends(
        self, scope: str, split_ids: Collection[SplitId], marks: Mapping[SplitId, Mark]
    ) -> Mapping[SplitId, SplitEnd]:
        if self.is_mute:
            raise TransientDiscoveryError("it does not answer", scope=scope)
        return super().ends(scope, split_ids, marks)


class MutableHalf(TapeHalf):
    """Tapes whose ends are unknown from time to time."""

    def hooks(self, context: PlannerContext[None]) -> MutableEnds:
        self.made = MutableEnds(self.shelf, is_timed=False)
        return self.made


def test_a_micro_batch_looks_for_records_while_the_ends_are_unknown(make: Make) -> None:
    half = MutableHalf(shelf(), knows_ends=True)
    query = make(half)
    query.read_all()
    query.trigger_until(lambda: not query.trigger(), "the query to be idle")
    count = len(query.offsets)

    half.made.is_mute = True
    query.trigger_until(lambda: len(query.offsets) > count, "a micro-batch in vain")
    query.read_all()


def test_splits_may_have_more_up_to_their_ends(make: Make) -> None:
    query = make(TapeHalf(shelf(), knows_ends=True))
    a, b = (SHELF, "a"), (SHELF, "b")
    end = StreamOffset(
        positions={a: 3, b: None}, journal=JournalPoint(journal="j", number=1, held=frozenset())
    )
    query.planner._ends.close()
    ends: Any = SimpleNamespace(close=lambda: None)
    query.planner.__dict__["_ends"] = ends

    def may_have_more(lengths: Mapping[SplitId, int], *mute: SplitId) -> bool:
        known = {split_id: SplitEnd(end=length) for split_id, length in lengths.items()}
        ends.get, ends.silent = lambda _: known, frozenset(mute)
        return query.planner._may_have_more(end)

    assert not may_have_more({a: 3, b: 0})
    assert may_have_more({a: 4, b: 0})
    assert may_have_more({a: 3, b: 1})
    assert may_have_more({a: 3}), "an unknown end may hide records"
    assert may_have_more({a: 3, b: 0}, a), "so does an old one"


def test_only_splits_whose_ends_are_known_now_count_as_read_to_them(make: Make) -> None:
    """A split that is ahead of its end is read to it as well; a silent one may have more."""
    query = make(TapeHalf(shelf(), knows_ends=True))
    at, ahead, behind, unknown, mute, first = ids = [(SHELF, name) for name in "abcdef"]
    known = {at: 3, ahead: 2, behind: 4, mute: 3, first: 0}
    positions: dict[SplitId, int | None] = {**dict.fromkeys(ids, 3), first: None}
    query.planner._ends.close()
    query.planner.__dict__["_ends"] = SimpleNamespace(
        get=lambda _: {split_id: SplitEnd(end=end) for split_id, end in known.items()},
        silent=frozenset({mute}),
        close=lambda: None,
    )

    found = query.planner._read_to_end(StreamOffset(positions=positions), ids)

    assert found == [at, ahead, first]
    assert unknown not in known
