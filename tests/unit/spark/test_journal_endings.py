"""A reader that ends a split for good, or its task, although there is more to read."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from balanced_source.api import STOP, BoundedSplit, Position, SplitId
from balanced_source.documents.journal import FetchLimits, RecordKey
from balanced_source.errors import ContractViolationError
from balanced_source.host.journaling import Share
from balanced_source.reader import Fetched, SplitFetcher
from balanced_source_spark.contract.half import Query
from balanced_source_spark.journal.reading import Reading, fetch
from balanced_source_spark.journal.task import JournalTaskReader
from balanced_source_spark.journal_stores.folder import FolderJournal
from balanced_source_spark.partition import ReaderPartition
from support.journal_query import Make
from support.tapes import (
    SHELF,
    ForgetfulHalf,
    Shelf,
    TapeEmitter,
    TapeHalf,
    TapeReader,
    TapeSource,
    TapeSourceReader,
    TapeSplit,
)

A, B = (SHELF, "a"), (SHELF, "b")
KEY = RecordKey("j", 1, 0)
QUERY: Query[None] = Query(client_id="c", read=None)


def share(stop: int | None = None, wait: int = 20) -> Share:
    attributes = {} if stop is None else {B: {STOP: stop}}
    limits = FetchLimits(wait_millis=wait)
    return Share(key=KEY, parallelism=1, limits=limits, starts={A: 0, B: 0}, attributes=attributes)


def run(
    tmp_path: Path, half: TapeHalf, part: Share, targets: Mapping[SplitId, int] | None = None
) -> int:
    """Run a task of a source whose splits do not end; return the number of its rows."""
    journal = FolderJournal(tmp_path / "j")
    journal.create("j")
    query: Query[None] = Query(client_id="c", read=None, journal=journal)
    partition = ReaderPartition(
        subtask_id=0,
        ranges=(),
        settings={"tapes": {}},
        share=replace(part, targets=targets),
        may_end=False,
    )
    try:
        return sum(b.num_rows for b in JournalTaskReader(half, query, "tapes").read(partition))
    except ContractViolationError:
        assert journal.read(KEY) is None, "nothing is sealed"
        raise


@pytest.mark.parametrize(
    "half",
    [
        TapeHalf(Shelf(lengths={"a": 5, "b": 3}, ends={"b": 3})),
        ForgetfulHalf(Shelf(lengths={"a": 5, "b": 0})),
    ],
)
def test_a_split_that_cannot_end_is_not_lost_in_silence(tmp_path: Path, half: TapeHalf) -> None:
    with pytest.raises(
        ContractViolationError,
        match=r"connector 'tapes'.*ended split .*'b'.*finished_splits.*snapshot_state.*has_ending",
    ):
        run(tmp_path, half, share())


def test_a_split_ends_at_its_stop(tmp_path: Path) -> None:
    assert run(tmp_path, TapeHalf(Shelf(lengths={"a": 5, "b": 9})), share(stop=3)) == 8


class StoppingTape(TapeSplit, BoundedSplit):
    """A tape whose stop only its connector knows."""

    @property
    def stopping_position(self) -> Position:
        return 3 if self.name == "b" else None


class StoppingHalf(TapeHalf):
    """Its first tape goes on, and the other one ends."""

    def split(self, *args: Any) -> TapeSplit:
        made = super().split(*args)
        return StoppingTape(name=made.name, next=made.next)


def test_a_split_may_end_where_its_connector_stops_it(tmp_path: Path) -> None:
    """The source beside it need not end anything else."""
    shelf = Shelf(lengths={"a": 5, "b": 9}, ends={"b": 3})

    assert run(tmp_path, StoppingHalf(shelf), share()) == 8
    shelf.ends = {"a": 4}
    with pytest.raises(ContractViolationError, match=r"ended split .*'a'"):
        run(tmp_path / "other", StoppingHalf(shelf), share())


def test_a_split_may_end_at_the_target_of_a_query_that_ends(tmp_path: Path) -> None:
    half = TapeHalf(Shelf(lengths={"a": 5, "b": 9}))
    assert run(tmp_path, half, share(), {A: 5, B: 3}) == 8


class LateFetchers:
    """Fetches as a thread does: each result comes some polls after it was asked for.

    Args:
        reader: that fetches.
        polls: until a result is there.
    """

    def __init__(self, reader: TapeReader, polls: int) -> None:
        self._fetcher = SplitFetcher(reader)
        self._polls, self._waited = polls, 0

    def add_splits(self, splits: Collection[TapeSplit], generation: int) -> None:
        self._fetcher.add_splits(splits, generation)

    def remove_splits(self, split_ids: Collection[SplitId]) -> None:
        self._fetcher.remove_splits(split_ids)

    def pause_or_resume_splits(self, *_: Any) -> None:
        raise NotImplementedError

    def poll(self) -> Fetched[int] | None:
        self._waited += 1
        if self._waited % self._polls:
            return None
        found = self._fetcher.execute(self._fetcher.begin())
        self._fetcher.end(found)
        return found

    def has_result(self) -> bool:
        return False

    def is_idle(self) -> bool:
        return False

    def close(self) -> None:
        self._fetcher.reader.close()


class AtItsTip(TapeSourceReader):
    """Says from the start that it is 0 behind."""

    def millis_behind(self) -> Mapping[SplitId, int]:
        return dict.fromkeys(self._states, 0)


class Early(TapeHalf):
    """Its fetches take a while."""

    def reader(self, *args: Any) -> Any:
        made = AtItsTip(args[2], LateFetchers(TapeReader(self.shelf), 6), TapeEmitter(1))
        made.shelf = self.shelf
        return made


@pytest.mark.timeout(60)
def test_a_reader_that_is_at_its_tip_from_the_start_is_believed_when_it_has_looked() -> None:
    """Nothing but the tip ends this task."""
    part = share(wait=3_600_000)
    half = Early(Shelf(lengths={"a": 5, "b": 3}))
    with Reading(half, QUERY, {"tapes": {}}, part, {}, may_end=False) as made:
        record = fetch(made, part.limits)

    assert (record.records, record.has_more) == (8, False)


class OwnReader(Early):
    """Its reader does not say whether a fetch brought nothing."""

    def reader(self, *args: Any) -> Any:
        made = super().reader(*args)
        made.is_drained = lambda _: False  # type: ignore[method-assign]
        return made


def test_a_reader_that_does_not_say_whether_it_has_looked_waits_for_the_silence() -> None:
    part = share(wait=500)
    half = OwnReader(Shelf(lengths={"a": 5, "b": 3}))
    with Reading(half, QUERY, {"tapes": {}}, part, {}, may_end=False) as made:
        assert fetch(made, part.limits).records == 8


@pytest.mark.parametrize(
    ("source", "told", "may_end"),
    [
        (TapeSource(), True, False),
        (TapeSource(is_bounded=True), True, True),
        (TapeSource(), False, True),
    ],
    ids=["endless", "bounded", "an older operator does not say"],
)
def test_tasks_learn_from_the_assignment_whether_splits_end(
    make: Make, source: TapeSource, *, told: bool, may_end: bool
) -> None:
    query = make(source=source)
    query.trigger_until(lambda: bool(query.records), "the first records")
    if not told:
        query.planner._runtime._seen.assignment = replace(
            query.planner._runtime.first_assignment(timeout=5.0), has_ending_splits=None
        )

    assert {part.may_end for part in query.partitions(query.committed - 1)} == {may_end}


@pytest.mark.parametrize("is_bounded", [True, False])
def test_a_replay_that_is_planned_before_any_assignment_asks_the_source_whether_splits_end(
    make: Make, *, is_bounded: bool
) -> None:
    source = TapeSource(is_bounded=is_bounded)
    query = make(source=source)
    query.trigger_until(lambda: bool(query.records), "the first records")
    query.planner._options = replace(query.planner._options, embedded=source)
    query.planner._runtime._seen.assignment = None

    assert {part.may_end for part in query.partitions(query.committed - 1)} == {is_bounded}


class LaterAtItsTip(AtItsTip):
    """Is behind until it is asked the second time, and cannot tell whether a fetch was in vain."""

    asked = 0

    def millis_behind(self) -> Mapping[SplitId, int]:
        self.asked += 1
        return super().millis_behind() if self.asked > 1 else dict.fromkeys(self._states, 1)

    def is_drained(self, split_id: SplitId) -> bool:
        return False


class Late(TapeHalf):
    """Its reader has measured when it says that it is at its tip."""

    def reader(self, *args: Any) -> Any:
        made = LaterAtItsTip(args[2], LateFetchers(TapeReader(self.shelf), 1), TapeEmitter(1))
        made.shelf = self.shelf
        return made


@pytest.mark.timeout(60)
def test_a_split_that_was_behind_at_the_start_is_believed_without_a_further_fetch() -> None:
    part = share(wait=3_600_000)
    half = Late(Shelf(lengths={"a": 5, "b": 3}))
    with Reading(half, QUERY, {"tapes": {}}, part, {}, may_end=False) as made:
        assert not fetch(made, part.limits).has_more
