"""Splits of a source with a journal are aligned in event time, by the times of their records."""

from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from balanced_source.errors import ContractViolationError, InvalidSpecError
from balanced_source_spark.options import AlignmentOptions
from support.journal_query import Death, JournalQuery, Make
from support.tapes import TapeHalf, shelf

DRIFT = 1000

ALIGNED = AlignmentOptions(max_drift=DRIFT, idle_timeout=0.0)
"""A tape that is read to its end holds no one back."""


def timed(*, knows_ends: bool = False, count: int = 3, length: int = 20) -> TapeHalf:
    """Tapes whose records are 100, 400, 700 milliseconds apart and so on."""
    half = TapeHalf(shelf(count, length), is_timed=True, knows_ends=knows_ends)
    half.shelf.times = {name: (50, 100 + 300 * n) for n, name in enumerate(half.shelf.lengths)}
    return half


def check_drift(query: JournalQuery, half: TapeHalf) -> None:
    """No record is further ahead than the drift of what was next in any tape."""
    held: Counter[str] = Counter()
    for number in sorted(query.batches):
        following = [
            half.shelf.time_of((name, held[name])) or 0
            for name, length in half.shelf.lengths.items()
            if held[name] < length
        ]
        times = [half.shelf.time_of(record) or 0 for record in query.batches[number]]
        assert max(times, default=0) <= min(following, default=0) + DRIFT, f"micro-batch {number}"
        held.update(name for name, _ in query.batches[number])


@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    limit=st.sampled_from([None, 1, 5]),
    knows_ends=st.booleans(),
    deaths=st.lists(st.sampled_from([None, *Death]), max_size=8),
    rescales=st.lists(st.integers(min_value=1, max_value=4), max_size=3),
)
def test_no_split_runs_ahead_and_every_record_comes_once(
    tmp_path_factory: pytest.TempPathFactory,
    *,
    limit: int | None,
    knows_ends: bool,
    deaths: list[Death | None],
    rescales: list[int],
) -> None:
    half = timed(knows_ends=knows_ends)
    query = JournalQuery(
        tmp_path_factory.mktemp("j") / "journal", half, max_records=limit, alignment=ALIGNED
    )
    try:
        for number, death in enumerate(deaths):
            query.trigger(die=death)
            if number < len(rescales):
                query.parallelism = rescales[number]
                query.channel.rescale(rescales[number])
        query.read_all()
        check_drift(query, half)
    finally:
        query.close()


def test_a_split_ahead_waits_for_the_slowest(make: Make) -> None:
    half = timed(count=2)
    half.shelf.times = {"tape-0": (0, 100), "tape-1": (5000, 100)}
    query = make(half, max_records=None, alignment=ALIGNED)

    for _ in range(2):
        query.trigger()

    assert query.records == Counter(("tape-0", number) for number in range(11))
    query.read_all()
    assert query.told["alignment"]["alignedTo"] >= 5000
    check_drift(query, half)


def test_a_split_without_records_holds_the_others_until_it_is_idle(make: Make) -> None:
    half = timed(count=2)
    half.shelf.lengths["tape-1"] = 0
    query = make(half, alignment=AlignmentOptions(max_drift=DRIFT, idle_timeout=3600))
    for _ in range(4):
        query.trigger()
    assert not query.records
    query.close()

    again = JournalQuery(query.folder / "other", half, alignment=ALIGNED)
    again.read_all()
    again.close()


def test_a_query_that_ends_by_itself_reads_everything(make: Make) -> None:
    half = timed()
    query = make(half, alignment=AlignmentOptions(max_drift=DRIFT, idle_timeout=3600))
    query.planner.prepareForTriggerAvailableNow()

    micro_batches = 0
    while query.trigger():
        micro_batches += 1
        assert micro_batches < 100, "nothing is left to be read"

    assert query.records == Counter(half.shelf.records())
    check_drift(query, half)


def test_a_single_micro_batch_leaves_nothing_for_another_one(make: Make) -> None:
    half = timed()
    query = make(half, alignment=ALIGNED)

    assert query.once()

    assert query.records == Counter(half.shelf.records())


def test_a_gap_that_is_longer_than_the_drift_is_passed(make: Make) -> None:
    half = timed(count=2)
    half.shelf.times = {"tape-0": (0, 50 * DRIFT), "tape-1": (0, 70 * DRIFT)}
    query = make(half, max_records=None, alignment=ALIGNED)

    query.read_all()

    check_drift(query, half)


def test_a_new_driver_learns_the_times_again(make: Make) -> None:
    half = timed()
    query = make(half, max_records=None, alignment=ALIGNED)
    for _ in range(4):
        query.trigger()
    before = query.records

    query.restart()
    query.trigger()

    assert query.records == before, "its first micro-batch only looks"
    query.read_all()
    check_drift(query, half)


def test_a_range_that_is_read_again_is_not_aligned_once_more(make: Make) -> None:
    half = timed()
    query = make(half, max_records=None, alignment=ALIGNED)
    for _ in range(3):
        query.trigger()
    number = query.committed - 1

    again = sorted(record for part in query.partitions(number) for record in query.read(part))

    assert again == sorted(query.batches[number])


def test_records_without_times_are_a_mistake_of_the_connector(make: Make) -> None:
    half = timed()
    half.shelf.times.clear()
    query = make(half, alignment=ALIGNED)

    with pytest.raises(ContractViolationError, match="without a time, so splits cannot be aligned"):
        query.trigger()


def test_a_connector_that_tells_no_times_cannot_be_aligned(make: Make) -> None:
    with pytest.raises(InvalidSpecError, match="does not tell event times"):
        make(alignment=ALIGNED)
