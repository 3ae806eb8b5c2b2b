"""What a task keeps back because of its time."""

import pytest

from balanced_source.api import SplitId
from balanced_source.errors import ContractViolationError
from balanced_source_spark.journal.event_times import EventTimes, Unaligned

A: SplitId = ("s", "a")
B: SplitId = ("s", "b")


@pytest.fixture
def taken() -> list[tuple[object, int | None]]:
    return []


@pytest.fixture
def times(taken: list[tuple[object, int | None]]) -> EventTimes:
    return EventTimes(100, lambda record, time: taken.append((record, time)))


def emit(times: EventTimes, split_id: SplitId, record: object, time: int | None) -> None:
    times.on_split(split_id)
    times.on_record(record, time)


def test_what_one_poll_brings_of_a_split_is_kept_back_as_a_whole(
    times: EventTimes, taken: list[object]
) -> None:
    emit(times, A, "a1", 90)
    emit(times, B, "b1", 100)
    emit(times, A, "a2", 101)
    emit(times, B, "b2", 20)

    assert set(times.take()) == {A}
    assert taken == [("b1", 100), ("b2", 20)]
    assert times.known() == {A: 101, B: 100}
    assert not times.take(), "each poll is looked at once"


def test_nothing_more_is_taken_of_a_split_that_was_kept_back(
    times: EventTimes, taken: list[object]
) -> None:
    emit(times, A, "a1", 101)
    times.take()
    emit(times, A, "a2", 5)
    times.take()

    assert not taken
    assert times.kept_back == {A}


def test_a_record_is_taken_as_it_was_emitted(times: EventTimes, taken: list[object]) -> None:
    row = [1]
    emit(times, A, row, 5)
    row[0] = 2
    emit(times, A, row, 6)
    times.take()

    assert taken == [([1], 5), ([2], 6)]


@pytest.mark.parametrize(
    ("split_id", "where"), [(A, r"of split \('s', 'a'\)"), ((), "by the output of the reader")]
)
def test_records_without_times_are_told(times: EventTimes, split_id: SplitId, where: str) -> None:
    if split_id:
        times.on_split(split_id)
    times.on_record("r", None)
    times.take()

    with pytest.raises(ContractViolationError, match=where):
        times.known()


def test_splits_are_named_in_their_order(times: EventTimes) -> None:
    for split_id in (B, A):
        emit(times, split_id, "r", 5)
    assert list(times.known()) == [A, B]

    for name in ("z", "y"):
        times.on_split(("s", name))
        times.on_record("r", None)
    with pytest.raises(ContractViolationError, match=r"of split \('s', 'y'\)"):
        times.known()


def test_without_alignment_records_pass_as_they_come(taken: list[object]) -> None:
    times = Unaligned(lambda record, time: taken.append((record, time)))
    times.on_split(A)
    times.on_record("a1", None)

    assert taken == [("a1", None)]
    assert list(times.take()) == []
    assert times.known() == {}
    assert not times.kept_back
