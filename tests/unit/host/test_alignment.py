"""Alignment by admission, on simulated logs: no one runs ahead, no one waits forever."""

from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from balanced_source.api import MAX_WATERMARK, MIN_WATERMARK, SplitId
from balanced_source.host.alignment import (
    RecordTime,
    advance,
    capped,
    slowest,
    unaligned,
    watermarks,
)

Logs = Mapping[SplitId, Sequence[int]]
"""Split → times of its records, ascending; the index is the offset."""

A, B = ("k", "t", 0), ("k", "t", 1)


def following(logs: Logs, time: int) -> dict[SplitId, RecordTime | None]:
    """What a broker answers."""
    found: dict[SplitId, RecordTime | None] = {}
    for split_id, times in logs.items():
        offset = next((o for o, t in enumerate(times) if t > time), None)
        found[split_id] = None if offset is None else RecordTime(offset=offset, time=times[offset])
    return found


def read_all(logs: Logs, *, drift: int, limit: int) -> list[dict[SplitId, list[int]]]:
    """Micro-batches of at most `limit` records per split: times of what each reads."""
    positions = dict.fromkeys(logs, 0)
    ends = {s: len(times) for s, times in logs.items()}
    aligned, batches = -1, []
    for _ in range(10_000):
        if positions == ends:
            return batches
        finished = {s for s in logs if positions[s] == ends[s]}
        mark = slowest(
            aligned, positions, ends, following(logs, aligned), last_seen={}, idle=finished
        )
        aligned = advance(aligned, mark, max_drift=drift)
        allowed = capped(ends, following(logs, aligned))
        reached = {s: min(allowed[s], positions[s] + limit) for s in logs}
        batches.append({s: list(logs[s][positions[s] : reached[s]]) for s in logs})
        positions = reached
    raise AssertionError("it never ends")


logs = st.dictionaries(
    st.tuples(st.just("k"), st.just("t"), st.integers(0, 5)),
    st.lists(st.integers(0, 10_000), min_size=1, max_size=60).map(sorted),
    min_size=1,
    max_size=5,
)


@given(logs, st.integers(1, 2000), st.integers(1, 50))
def test_everything_is_read_and_no_split_is_ahead_by_more_than_the_drift(
    given_logs: Logs, drift: int, limit: int
) -> None:
    batches = read_all(given_logs, drift=drift, limit=limit)

    left = {s: list(times) for s, times in given_logs.items()}
    for batch in batches:
        slowest = min(times[0] for times in left.values() if times)
        for split_id, times in batch.items():
            assert all(t <= slowest + drift for t in times)
            assert left[split_id][: len(times)] == times
            del left[split_id][: len(times)]
    assert not any(left.values())


@given(logs, st.integers(1, 2000))
def test_a_watermark_delay_of_the_drift_drops_nothing(given_logs: Logs, drift: int) -> None:
    """What Spark does.

    The watermark of a batch is the newest time of the ones before it, less the delay.
    """
    newest = -1
    for batch in read_all(given_logs, drift=drift, limit=7):
        times = [t for each in batch.values() for t in each]
        assert all(t >= newest - drift for t in times)
        newest = max([newest, *times])


def test_without_alignment_a_skewed_backlog_is_late() -> None:
    """The same simulation with no cap: B's records are hours apart, A's seconds."""
    skewed: Logs = {A: range(100), B: range(0, 100_000, 1000)}

    newest, late = -1, 0
    for batch in read_all(skewed, drift=10**9, limit=10):
        times = [t for each in batch.values() for t in each]
        late += sum(t < newest - 100 for t in times)
        newest = max([newest, *times])

    assert late > 0


def test_a_split_that_is_read_to_its_end_holds_others_until_it_is_idle() -> None:
    positions, ends = {A: 3, B: 0}, {A: 3, B: 5}
    answers = {A: None, B: RecordTime(offset=0, time=5000)}
    known = {A: 1000}

    waiting = slowest(1000, positions, ends, answers, last_seen=known, idle=())
    unknown = slowest(1000, positions, ends, answers, last_seen={}, idle=())
    later = slowest(1000, positions, ends, answers, last_seen=known, idle={A})

    assert (waiting, unknown, later) == (1000, None, 5000)
    assert [advance(1000, mark, max_drift=100) for mark in (waiting, unknown, later)] == [
        1100,
        1000,
        5100,
    ]
    assert capped(ends, {A: None, B: RecordTime(offset=0, time=5000)}) == {A: 3, B: 0}


def test_idle_splits_alone_have_no_slowest_one() -> None:
    assert slowest(1000, {A: 3}, {A: 3}, {A: None}, last_seen={A: 900}, idle={A}) == MAX_WATERMARK
    assert slowest(1000, {}, {}, {}, last_seen={}, idle=()) == MAX_WATERMARK


@given(st.integers(0, 10_000), st.integers(0, 10_000), st.integers(0, 10_000), st.integers(1, 2000))
def test_splits_of_other_sources_hold_back_like_own_ones(
    aligned: int, own: int, others: int, drift: int
) -> None:
    assert advance(aligned, own, others=others, max_drift=drift) == advance(
        aligned, min(own, others), max_drift=drift
    )
    assert advance(aligned, own, others=MIN_WATERMARK, max_drift=drift) == aligned
    assert advance(aligned, own, others=MAX_WATERMARK, max_drift=drift) == advance(
        aligned, own, max_drift=drift
    )


def test_a_split_whose_cluster_does_not_answer_is_not_read_on() -> None:
    assert capped({A: 3, B: 5}, {A: None}) == {A: 3}


def test_watermarks_are_those_of_the_next_record() -> None:
    answers = {A: RecordTime(offset=3, time=700), B: RecordTime(offset=9, time=900)}

    assert watermarks(500, {A: 3, B: 4}, {A: 10, B: 10}, answers) == {A: 700, B: 500}


def test_only_splits_that_may_be_behind_hold_the_others() -> None:
    """What is admitted of A is read, so A is ahead; B is read to its end and may get old records.

    So no time is known until B is idle, or has one.
    """
    positions, ends = {A: 3, B: 5}, {A: 9, B: 5}
    answers = {A: RecordTime(offset=2, time=70), B: None}

    def found(**changes: Any) -> int | None:
        values: dict[str, Any] = {"last_seen": {}, "idle": (), **changes}
        return slowest(10, positions, ends, answers, **values)

    assert found() is None
    assert found(last_seen={B: 40}) == 40
    assert found(last_seen={A: 20, B: 40}) == 40, "A is ahead of what is admitted"
    assert found(idle=[B]) == MAX_WATERMARK
    assert found(idle=[A], last_seen={B: 40}) == 40


def test_a_split_that_is_not_read_up_to_the_aligned_time_holds_all_others() -> None:
    positions, ends = {A: 1, B: 5}, {A: 9, B: 9}
    answers = {A: RecordTime(offset=2, time=70), B: RecordTime(offset=5, time=60)}

    assert slowest(10, positions, ends, answers, last_seen={}, idle=()) is None
    assert slowest(10, {A: 2, B: 5}, ends, answers, last_seen={}, idle=()) == 60
    assert watermarks(10, positions, ends, answers) == {A: 10, B: 60}


def test_a_split_of_which_not_even_the_end_is_known_holds_all_others() -> None:
    """It may hold old records. One with an end beyond its position is ahead."""
    positions, newer = {A: 0, B: 5}, {B: RecordTime(offset=5, time=90)}

    def mark(**ends: int) -> int | None:
        known = {B: 9, **({A: ends["a"]} if ends else {})}
        return slowest(50, positions, known, {A: None, **newer}, last_seen={}, idle=())

    assert mark() is None
    assert mark(a=0) is None, "it is empty"


def test_an_idle_split_that_is_not_read_up_to_the_aligned_time_holds_no_one() -> None:
    """Its leader is silent, or other records have its offsets."""
    positions, ends = {A: 1, B: 5}, {A: 9, B: 9}
    answers = {A: RecordTime(offset=2, time=70), B: RecordTime(offset=5, time=60)}

    assert slowest(10, positions, ends, answers, last_seen={}, idle=[A]) == 60
    assert slowest(10, positions, ends, answers, last_seen={}, idle=[A, B]) == 60, "B has records"


def test_a_source_without_event_times_says_which_field_to_leave_out() -> None:
    assert unaligned("files").startswith("connector 'files' does not tell event times")
    assert "leave it out (in a spec: alignment)" in unaligned("files")
