"""Where a micro-batch ends."""

import json
from dataclasses import replace

import pytest

from balanced_source.api import STOP
from balanced_source.documents import stream_offset
from balanced_source.documents.stream_offset import StreamOffset, TermEnd
from balanced_source.host import go_on, plan
from balanced_source.host.micro_batch import (
    advance,
    can_grow,
    close,
    is_new,
    reachable,
    within_stops,
)

A, B, C = ("x", "t", 0), ("y", "t", 0), ("y", "t", 1)
READ = StreamOffset(
    epoch=3,
    parallelism=2,
    readers=(0, 1),
    owners={A: 0, B: 1},
    positions={A: 7, B: 4},
    starts={A: 0, B: 0},
)


def stored(offset: StreamOffset) -> StreamOffset:
    """As Spark gives it back."""
    return stream_offset.from_json(json.loads(json.dumps(stream_offset.to_json(offset))))


def test_a_split_is_read_to_its_end_and_never_backwards() -> None:
    assert reachable(READ, {A: 9, B: 2}) == {A: 9, B: 4}
    assert reachable(READ, {}) == {A: 7, B: 4}, "nothing is known"
    assert reachable(StreamOffset(positions={A: 0, B: None}), {}) == {A: 0, B: 0}, "nor was read"


def test_a_cluster_that_does_not_answer_is_not_read_unless_the_query_ends_by_itself() -> None:
    ends = {A: 9, B: 9}

    assert reachable(READ, ends, silent={B}) == {A: 9, B: 4}
    assert reachable(READ, ends, silent={B}, targets=ends) == ends


def test_a_query_that_ends_by_itself_reads_the_records_of_its_start_that_still_exist() -> None:
    assert reachable(READ, {A: 9, B: 9}, targets={A: 8, B: 20}) == {A: 8, B: 9}
    assert reachable(READ, {A: 9}, targets={A: 8}) == {A: 8, B: 4}


def test_new_data_is_a_record_or_an_epoch() -> None:
    base = go_on(READ)

    assert not is_new(READ, base)
    assert is_new(READ, advance(base, {A: 8, B: 4}))
    assert is_new(READ, replace(base, epoch=4))


def test_the_closing_micro_batch_reads_nothing_in_each_of_its_lives() -> None:
    """Its start may adopt an epoch itself.

    A source that is read in one micro-batch, which is the default.
    """
    closing = close(READ)
    again = close(closing)

    for before, after in ((READ, closing), (closing, again)):
        assert plan(stored(before), stored(after)) == ()
        assert stream_offset.to_json(before) != stream_offset.to_json(after), (
            "else Spark makes no micro-batch of it"
        )
        assert stream_offset.to_json(after)[stream_offset.FINISHED]
        assert not is_new(before, after)


def test_the_micro_batch_after_a_closing_one_is_not_closing() -> None:
    """A cluster is added after everything was read."""
    assert go_on(close(READ)) == replace(READ, starts={})


@pytest.mark.parametrize(
    "follows", [{}, {"positions": {A: 7, B: 4, C: 2}, "starts": {C: 0}, "epoch": 4}]
)
def test_starts_that_a_previous_version_repeated_are_not_read_again(
    follows: dict[str, object],
) -> None:
    """Version 0.1.0 closed with the raw offset before it, and `true`."""
    old = stream_offset.from_json({**stream_offset.to_json(READ), stream_offset.FINISHED: True})

    assert plan(READ, old) == ()
    assert old.closings == 1
    after = replace(old, owners={A: 0, B: 1, C: 0}, **follows)
    assert {r.split_id for p in plan(old, after) for r in p.ranges} == ({C} if follows else set())


def test_the_closing_offset_is_read_back_as_it_was() -> None:
    assert stored(close(READ)) == close(READ)
    assert stored(close(close(READ))).closings == 2


def test_a_split_that_moves_takes_the_leadership_of_its_end() -> None:
    base = replace(go_on(READ), terms={A: 3, B: 3})

    assert advance(base, {A: 8, B: 4}, terms={A: 5, B: 5}).terms == {A: 5, B: 3}
    assert advance(base, {A: 8, B: 4}).terms == {B: 3}, "brokers that do not say"


def test_ends_of_previous_leaderships_go_with_the_leadership() -> None:
    old, new = (TermEnd(1, 2),), (TermEnd(3, 7),)
    base = replace(go_on(READ), terms={A: 3, B: 3}, term_ends={A: old, B: old})
    ends = {A: 8, B: 4}

    assert advance(base, ends, terms={A: 5, B: 5}).term_ends == {A: old, B: old}, (
        "nothing was checked"
    )
    assert advance(base, ends, terms={A: 5, B: 5}, term_ends={A: new, B: new}).term_ends == {
        A: new,
        B: old,
    }
    assert advance(base, ends).term_ends == {B: old}, "brokers that do not say"


def test_a_split_of_which_nothing_was_ever_read_keeps_what_is_known_of_its_leaderships() -> None:
    base = replace(go_on(READ), positions={A: None, B: 4}, terms={A: 3})

    assert advance(base, {A: 0, B: 4}, terms={A: 5}, term_ends={A: (TermEnd(3, 7),)}) == replace(
        base, positions={A: 0, B: 4}
    )


def test_a_split_whose_log_was_cut_goes_back_and_reads_nothing_in_that_micro_batch() -> None:
    base = replace(go_on(READ), terms={A: 3, B: 3})
    back = advance(base, {A: 7, B: 4}, terms={A: 5}, cuts={A: 2})

    assert (back.positions, back.terms) == ({A: 2, B: 4}, {A: 5, B: 3})
    assert is_new(READ, back)
    assert plan(stored(base), stored(back)) == ()
    assert [r.start for p in plan(back, advance(back, {A: 6, B: 4})) for r in p.ranges] == [2]


def test_a_query_that_ends_by_itself_does_not_read_a_split_whose_end_is_unknown() -> None:
    base = StreamOffset(epoch=1, positions={("c", "t", 0): None})

    assert reachable(base, {}, targets={("c", "t", 0): 5}) == {("c", "t", 0): 0}


def test_a_silent_split_of_another_host_is_not_added() -> None:
    assert reachable(READ, {A: 9}, silent={B, C}) == {A: 9, B: 4}


def test_a_query_that_ends_by_itself_stops_where_a_split_ends_for_good() -> None:
    base = replace(READ, attributes={A: {STOP: 8}, B: {"zone": "x"}})

    assert within_stops({A: 9, B: 9}, base) == {A: 8, B: 9}
    assert within_stops({A: 7, B: 9}, base) == {A: 7, B: 9}


def test_splits_may_grow_unless_each_can_be_read_to_its_stop() -> None:
    base = replace(READ, attributes={A: {STOP: 8}, B: {STOP: 5}})

    assert can_grow(base, {A: 7, B: 5})
    assert can_grow(base, {A: 8, B: 4})
    assert not can_grow(base, {A: 8, B: 5})
    assert can_grow(READ, {A: 8, B: 5}), "they have no stops"
    assert can_grow(replace(READ, attributes={A: {STOP: 8}}), {A: 8, B: 5}), "one has none"
