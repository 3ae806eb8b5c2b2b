"""A query with a journal that ends by itself reads exactly what was there when it began."""

from collections import Counter

import pytest

from balanced_source.api import InputStatus, ReaderOutput, SplitId
from support.journal_query import Make
from support.tapes import Record, TapeHalf, TapeSourceReader, shelf


@pytest.mark.parametrize("knows_ends", [False, True])
def test_a_query_that_ends_by_itself_reads_all_available_records(
    make: Make, *, knows_ends: bool
) -> None:
    query = make(TapeHalf(shelf(), knows_ends=knows_ends))
    query.planner.prepareForTriggerAvailableNow()
    while query.trigger():
        if knows_ends:
            query.half.shelf.lengths["tape-0"] += 1  # it grows faster than it is read

    expected = shelf().records()
    assert query.records.keys() >= expected
    if knows_ends:
        assert query.records == Counter(expected)


def test_the_only_record_of_a_split_whose_turn_comes_last_is_read(make: Make) -> None:
    query = make(TapeHalf(shelf(length=1), knows_ends=True), max_records=1)
    query.planner.prepareForTriggerAvailableNow()

    micro_batches = 0
    while query.trigger():
        micro_batches += 1

    assert query.records == Counter(query.half.shelf.records())
    assert micro_batches > 1


def test_such_a_query_ends_although_a_split_was_read_to_its_end_before(make: Make) -> None:
    half = TapeHalf(shelf())
    half.shelf.stops["tape-0"] = 12
    query = make(half)
    query.planner.prepareForTriggerAvailableNow()

    micro_batches = 0
    while query.trigger():
        micro_batches += 1
        assert micro_batches < 50, "nothing is left to be read"

    assert query.records == Counter(half.shelf.records())


@pytest.mark.parametrize("is_single", [False, True])
def test_such_a_query_ends_exactly_where_it_should_although_the_reader_ignores_stops(
    make: Make, *, is_single: bool
) -> None:
    """There is much more by the time it reads."""
    expected = shelf(length=30).records()
    query = make(TapeHalf(shelf(length=30), knows_ends=True, honours_stops=False))
    query.planner.prepareForTriggerAvailableNow()
    query.half.shelf.lengths = dict.fromkeys(query.half.shelf.lengths, 500)
    if is_single:
        assert query.once()
    else:
        while query.trigger():
            pass

    assert query.records == Counter(expected)


@pytest.mark.parametrize("is_single", [False, True])
def test_a_reader_that_ends_a_split_before_its_target_loses_nothing(
    make: Make, *, is_single: bool
) -> None:
    """The rest comes in later micro-batches: a target is no end that the source has confirmed."""
    world = shelf(length=12)
    world.gives_up = 2
    query = make(TapeHalf(world, knows_ends=True), max_records=None)
    query.planner.prepareForTriggerAvailableNow()
    for _ in range(10):
        _ = query.once() if is_single else query.trigger()
        if is_single:  # the next run of the program
            query.restart()

    assert query.records == Counter(world.records())


class Forgetful(TapeSourceReader):
    """Brings several records in a poll, and forgets a split before it releases its output."""

    def poll_next(self, output: ReaderOutput[Record]) -> InputStatus:
        release = output.release_output_for_split

        def forget(split_id: SplitId) -> None:
            kept = self.snapshot_state
            self.snapshot_state = lambda number: [  # type: ignore[method-assign,assignment]
                split for split in kept(number) if split.split_id != split_id
            ]
            try:
                release(split_id)
            finally:
                self.snapshot_state = kept  # type: ignore[method-assign]

        output.release_output_for_split = forget  # type: ignore[method-assign]
        try:
            return [super(Forgetful, self).poll_next(output) for _ in range(5)][-1]
        finally:
            output.release_output_for_split = release  # type: ignore[method-assign]


def test_a_reader_that_forgets_a_split_first_delivers_nothing_twice(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has not said where it ended the split, so it is believed: the target is reached."""
    monkeypatch.setattr("support.tapes.TapeSourceReader", Forgetful)
    world = shelf(length=12)
    query = make(TapeHalf(world, knows_ends=True), max_records=None)
    query.planner.prepareForTriggerAvailableNow()
    for _ in range(10):
        query.trigger()

    assert query.records == Counter(world.records())


def test_records_that_are_missing_before_a_target_end_no_query_early(make: Make) -> None:
    """Of `tape-0` nothing is there up to the target: no reader will ever come nearer to it."""
    world = shelf(length=12)
    world.begins = {"tape-0": 12}
    query = make(TapeHalf(world, knows_ends=True))
    query.planner.prepareForTriggerAvailableNow()
    ran = [query.trigger() for _ in range(20)]

    assert query.records == Counter((name, n) for name, n in world.records() if name != "tape-0")
    assert not ran[-1], "it has ended"


@pytest.mark.parametrize("knows_ends", [False, True])
def test_one_micro_batch_reads_everything_whatever_the_limit(
    make: Make, *, knows_ends: bool
) -> None:
    query = make(TapeHalf(shelf(), knows_ends=knows_ends), max_records=1)
    assert query.once()
    assert query.records == Counter(shelf().records())
    query.restart()

    query.half.shelf.lengths["tape-0"] += 3
    assert query.once()
    assert query.records == Counter(query.half.shelf.records())


def test_a_source_that_always_has_more_ends_when_the_option_says_so(make: Make) -> None:
    """It cannot tell its ends, and no reader is ever caught up."""
    query = make(TapeHalf(shelf()), end_after=0.3)
    query.planner.prepareForTriggerAvailableNow()
    while query.trigger():
        lengths = query.half.shelf.lengths
        query.half.shelf.lengths = {name: length + 10 for name, length in lengths.items()}
    read, query.end_after = query.records, None
    query.restart()
    query.planner.prepareForTriggerAvailableNow()
    while query.trigger():
        pass

    assert read.total() < query.records.total(), "the next run reads what is left"
    assert query.records == Counter(query.half.shelf.records())


def test_the_only_micro_batch_of_a_query_ends_when_the_option_says_so(make: Make) -> None:
    query = make(TapeHalf(shelf(length=10**9)), max_records=None, end_after=0.2)

    assert query.once()

    assert 0 < query.records.total() < 10**8
    assert set(query.records.values()) == {1}
