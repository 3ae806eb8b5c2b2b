"""Records that a log has lost before they were read: they are no lag, and reading passes them."""

from dataclasses import replace

import pytest

from balanced_source.api import IDENTITY, STOP
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.host.ends import Look, SplitEnd, look, unread_rests
from balanced_source.host.observation import observe

A, B, C = ("c", "t", 0), ("c", "t", 1), ("c", "t", 2)
BASE = StreamOffset(
    epoch=1,
    parallelism=2,
    readers=(0, 1),
    owners={A: 0, B: 0, C: 1},
    positions={A: 5, B: 5, C: None},
)


@pytest.mark.parametrize(("first", "found"), [(4, {}), (5, {}), (6, {A: 6}), (9, {A: 9})])
def test_only_what_was_deleted_behind_the_position_is_passed(
    first: int, found: dict[object, int]
) -> None:
    assert look(BASE, {A: SplitEnd(end=9, first=first)}) == Look(ends={A: 9}, firsts=found)


def test_reading_passes_no_further_than_the_end_or_the_stop() -> None:
    stops = replace(BASE, attributes={B: {STOP: 7}})
    known = {A: SplitEnd(end=9, first=12), B: SplitEnd(end=9, first=8)}

    assert look(stops, known) == Look(ends={A: 9, B: 7}, firsts={A: 9, B: 7})


def test_reading_continues_behind_what_was_deleted_and_never_goes_back() -> None:
    held, free = {A: 5, B: 5, C: 0}, {A: 9, B: 6, C: 0}

    assert Look(firsts={A: 7, B: 8, C: 3}).behind_deleted(held, free) == {A: 7, B: 6, C: 0}
    assert Look(firsts={A: 3}).behind_deleted(held, free) == held
    assert Look().behind_deleted(held, {}) == held


def test_deleted_records_are_neither_lag_nor_load() -> None:
    end = replace(BASE, positions={A: 20, B: 9, C: 4})

    seen = observe(BASE, end, {A: 30, B: 9, C: 10}, firsts={A: 15, B: 40, C: 2})

    assert {reader: load.records for reader, load in seen.readers.items()} == {0: 5, 1: 2}
    assert seen.lags == {A: 10, B: 0, C: 6}


def test_a_micro_batch_of_deleted_records_alone_has_nothing_to_read() -> None:
    end = replace(BASE, positions={A: 8, B: 9, C: None})

    seen = observe(BASE, end, {A: 12, B: 9, C: 0}, firsts={A: 12})

    assert seen.lags == {A: 0, B: 0, C: 0}
    assert {reader: load.records for reader, load in seen.readers.items()} == {0: 4, 1: 0}


@pytest.mark.parametrize(
    ("answer", "rest"),
    [
        (SplitEnd(end=9, identity="first"), {A: 9}),
        (SplitEnd(end=6, identity="first"), {A: 6}),
        (SplitEnd(end=5, identity="first"), {}),
        (SplitEnd(end=9, identity="second"), {}),
        (SplitEnd(end=9), {}),
        (None, {}),
    ],
    ids=["unread", "one record", "all read", "another split", "no identity", "no answer"],
)
def test_a_deleted_split_has_lost_what_was_not_read_of_it(
    answer: SplitEnd | None, rest: dict[object, int]
) -> None:
    base = replace(BASE, attributes={A: {IDENTITY: "first"}})
    known = {} if answer is None else {A: answer}

    assert unread_rests(base, known, [A]) == rest
    assert unread_rests(base, {**known, C: SplitEnd(end=1)}, [A, C]) == {**rest, C: 1}
    assert unread_rests(base, known, []) == {}


def test_a_split_with_a_stop_loses_its_rest_elsewhere() -> None:
    """See `Look.deleted`."""
    base = replace(BASE, attributes={A: {STOP: 7}})

    assert unread_rests(base, {A: SplitEnd(end=9), B: SplitEnd(end=8)}, [A, B]) == {B: 8}
