"""What the ends of splits mean for the offset in use."""

from balanced_source.api import IDENTITY, STOP
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.host.ends import Look, SplitEnd, look

A, B, C = ("c", "t", 0), ("c", "t", 1), ("c", "t", 2)
HELD = StreamOffset(
    positions={A: 5, B: 5, C: 5},
    attributes={A: {IDENTITY: "first"}, B: {IDENTITY: "first", STOP: 7}},
)


def test_a_split_ends_where_the_broker_says_and_at_most_at_its_stop() -> None:
    known = {s: SplitEnd(end=9, identity="first") for s in (A, B, C)}

    assert look(HELD, known) == Look(ends={A: 9, B: 7, C: 9})


def test_an_end_of_another_split_by_that_id_is_none_of_this_one() -> None:
    known = {s: SplitEnd(end=9, identity="second") for s in (A, B, C)}

    assert look(HELD, known) == Look(ends={C: 9}, recreated=frozenset({A, B})), "C: state of a former version"


def test_what_is_unknown_is_left_out() -> None:
    assert look(HELD, {A: SplitEnd(end=9)}) == Look(ends={A: 9}), "a broker without ids"
    assert look(HELD, {}) == Look()
    assert look(StreamOffset(), {A: SplitEnd(end=9)}) == Look()
