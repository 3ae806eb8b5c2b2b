"""A reader that emits several records in a poll, and ends with its last record."""

from collections import Counter
from pathlib import Path

import pytest

from balanced_source.api import STOP, InputStatus, Position, SplitId
from balanced_source.documents.journal import FetchLimits, RecordKey
from balanced_source.host.journaling import Share
from balanced_source_spark.contract.half import Query
from balanced_source_spark.journal.reading import Reading, fetch
from balanced_source_spark.journal.task import JournalTaskReader
from balanced_source_spark.journal_stores.folder import FolderJournal
from balanced_source_spark.partition import ReaderPartition
from support.bursts import BurstHalf
from support.journal_query import Make
from support.tapes import SHELF, Shelf, shelf

A = (SHELF, "a")
NO_LIMIT = FetchLimits(wait_millis=20)


def share(stop: int | None = None, limits: FetchLimits = NO_LIMIT) -> Share:
    attributes = {} if stop is None else {A: {STOP: stop}}
    return Share(
        key=RecordKey("j", 1, 3), parallelism=1, limits=limits, starts={A: 0}, attributes=attributes
    )


def reading(half: BurstHalf, part: Share, stops: dict[SplitId, Position]) -> Reading:
    return Reading(half, Query(client_id="c", read=None), {"tapes": {}}, part, stops)


@pytest.mark.parametrize("size", [2, 3, 4, 9])
@pytest.mark.parametrize("says_end", [True, False])
@pytest.mark.parametrize(
    ("limits", "stop", "stops"),
    [
        (NO_LIMIT, 4, {}),
        (NO_LIMIT, None, {A: 4}),
        (FetchLimits(max_records=4, wait_millis=20), 4, {}),
    ],
)
def test_a_reader_that_ends_with_its_last_record_is_not_polled_again(
    size: int,
    limits: FetchLimits,
    stop: int | None,
    stops: dict[SplitId, Position],
    *,
    says_end: bool,
) -> None:
    half, part = BurstHalf(Shelf(lengths={"a": 9}), size=size, says_end=says_end), share(stop)
    with reading(half, part, stops) as made:
        record = fetch(made, limits)

    assert (record.records, record.ends, record.has_more) == (4, {A: 4}, False)
    assert record.finished == (frozenset() if stops else {A})


def test_a_reader_that_ends_without_its_splits_finishes_none_of_them() -> None:
    """Its snapshot says where they are: the next micro-batch looks again from there."""
    half = BurstHalf(Shelf(lengths={"a": 9}))
    with reading(half, part := share(), {}) as made:
        one = made._reader.poll_next
        made._reader.poll_next = lambda output: (one(output), InputStatus.END_OF_INPUT)[1]  # type: ignore[method-assign]
        record = fetch(made, part.limits)

    assert (record.records, record.ends, record.finished) == (4, {A: 4}, frozenset())


def test_a_sealed_range_is_read_again_to_its_last_record(tmp_path: Path) -> None:
    journal = FolderJournal(tmp_path / "j")
    journal.create("j")
    query = Query(client_id="c", read=None, journal=journal)
    half = BurstHalf(Shelf(lengths={"a": 9}))
    part = ReaderPartition(subtask_id=3, ranges=(), settings={"tapes": {}}, share=share(stop=8))

    def attempt() -> int:
        task = JournalTaskReader(half, query, "tapes")
        return sum(batch.num_rows for batch in task.read(part))

    assert [attempt(), attempt()] == [8, 8]


@pytest.mark.parametrize("knows_ends", [False, True])
def test_a_query_that_ends_by_itself_reads_everything_once(make: Make, *, knows_ends: bool) -> None:
    world = shelf(length=12)
    query = make(BurstHalf(world, knows_ends=knows_ends), max_records=5)
    query.planner.prepareForTriggerAvailableNow()
    while query.trigger():
        pass

    assert query.records == Counter(world.records())
