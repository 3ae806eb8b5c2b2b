"""What the ends of splits mean for the offset in use."""

from dataclasses import replace

from balanced_source.api import IDENTITY, STOP
from balanced_source.documents.stream_offset import StreamOffset, TermEnd
from balanced_source.host.ends import (
    Confirmed,
    Look,
    Mark,
    Marks,
    SplitEnd,
    at_end,
    confirmed,
    look,
    mark_of,
    needs_check,
    with_confirmed,
)

A, B, C = ("c", "t", 0), ("c", "t", 1), ("c", "t", 2)
HELD = StreamOffset(
    positions={A: 5, B: 5, C: 5},
    attributes={A: {IDENTITY: "first"}, B: {IDENTITY: "first", STOP: 7}},
)


def test_a_split_ends_where_the_broker_says_and_at_most_at_its_stop() -> None:
    known = {s: SplitEnd(end=9, identity="first") for s in (A, B, C)}

    assert look(HELD, known) == Look(ends={A: 9, B: 7, C: 9})


def test_a_split_under_a_known_leadership_ends_at_its_stop_too() -> None:
    known = {s: SplitEnd(end=9, identity="first", term=4) for s in (A, B)}

    assert look(HELD, known) == Look(ends={A: 9, B: 7}, terms={A: 4, B: 4})


def test_the_end_of_another_split_with_the_same_id_is_ignored() -> None:
    known = {s: SplitEnd(end=9, identity="second") for s in (A, B, C)}

    assert look(HELD, known) == Look(ends={C: 9}, recreated=frozenset({A, B})), (
        "C: state of a former version"
    )


def test_unknown_ends_are_left_out() -> None:
    assert look(HELD, {A: SplitEnd(end=9)}) == Look(ends={A: 9}), "a broker without ids"
    assert look(HELD, {}) == Look()
    assert look(StreamOffset(), {A: SplitEnd(end=9)}) == Look()


def test_an_empty_split_ends_at_its_start() -> None:
    """Nothing was read of it, and nothing was cut."""
    base = StreamOffset(positions={A: None, B: 0}, attributes={B: {STOP: 7}})

    assert look(base, {A: SplitEnd(end=0), B: SplitEnd(end=0)}) == Look(ends={A: 0, B: 0})
    assert look(base, {A: SplitEnd(end=0, term=2)}) == Look(ends={A: 0}, terms={A: 2})


def test_a_deleted_split_with_records_before_its_stop_has_no_end_any_more() -> None:
    """What a server said of it before is old."""
    base = StreamOffset(positions={A: 3, B: 7}, attributes={A: {STOP: 7}, B: {STOP: 7}})
    known = {A: SplitEnd(end=6), B: SplitEnd(end=7)}

    seen = look(base, known, deleted=frozenset({A, B}))

    assert seen.ends == {B: 7}
    assert seen.deleted == {A: 7}


READ = StreamOffset(positions={A: 5, B: 5, C: None}, terms={A: 3, B: 3})


def test_an_answer_of_another_leadership_counts_when_the_log_was_found_whole() -> None:
    mark = Mark(position=5, term=3)
    whole = SplitEnd(end=9, term=4, checked=mark)

    assert look(READ, {A: SplitEnd(end=9, term=4)}) == Look(unchecked={A: 4}), "not checked"
    elsewhere = replace(whole, checked=Mark(position=4, term=3))
    assert look(READ, {A: elsewhere}) == Look(unchecked={A: 4}), "checked for another position"
    assert look(READ, {A: whole}) == Look(ends={A: 9}, terms={A: 4}, term_ends={A: ()})
    assert look(READ, {A: replace(whole, cut=4)}) == Look(
        cuts={A: 4}, terms={A: 4}, term_ends={A: ()}
    )
    assert look(READ, {A: replace(whole, cut=5)}) == look(READ, {A: whole}), (
        "nothing that was read is cut"
    )
    assert look(READ, {A: SplitEnd(end=9, term=3)}) == Look(ends={A: 9}, terms={A: 3}), (
        "the same leadership"
    )
    assert look(READ, {C: SplitEnd(end=9, term=8)}) == Look(ends={C: 9}, terms={C: 8}), (
        "not read yet"
    )


def test_an_end_before_the_position_is_checked_in_any_leadership() -> None:
    """Of a log that was cut, or of a transaction that is open: only the check can tell."""
    mark = Mark(position=5, term=3)

    assert look(READ, {A: SplitEnd(end=4, term=3)}) == Look(short={A: 4})
    assert look(READ, {A: SplitEnd(end=4, term=3, checked=mark)}) == Look(
        ends={A: 4}, terms={A: 3}, term_ends={A: ()}
    )
    assert look(READ, {A: SplitEnd(end=4, term=3, checked=mark, cut=4)}) == Look(
        cuts={A: 4}, terms={A: 3}, term_ends={A: ()}
    )


def test_a_confirmed_end_is_not_queried_again_until_it_moves() -> None:
    past = (TermEnd(3, 5),)
    known = {
        A: SplitEnd(end=5, term=4, checked=Mark(position=5, term=3), past=past),
        B: SplitEnd(end=5, term=3),
    }
    found = confirmed(READ, known)

    after = with_confirmed(READ, found)
    assert (after.terms, after.term_ends) == ({A: 4, B: 3}, {A: past})
    assert look(after, {A: SplitEnd(end=7, term=5, checked=Mark(position=5, term=4))}).ends == {}, (
        "not in its light"
    )
    assert look(after, {A: SplitEnd(end=7, term=4)}).ends == {A: 7}
    moved = replace(READ, positions={A: 6, B: 5})
    assert with_confirmed(moved, found) is moved
    assert READ.terms == {A: 3, B: 3}


def test_a_log_of_another_identity_needs_no_check_and_one_of_unknown_identity_does() -> None:
    mark, answer = (
        Mark(position=5, term=3, identity="first"),
        SplitEnd(end=9, term=4, identity="first"),
    )

    assert needs_check(mark, answer)
    assert not needs_check(mark, replace(answer, identity="second"))
    assert needs_check(mark, replace(answer, identity=None)), "the broker does not say"
    assert needs_check(replace(mark, identity=None), answer), "of a former version"


def test_marks_are_those_of_the_splits_that_the_offset_has() -> None:
    marks = Marks(READ, [A, B, ("c", "t", 9)])

    assert (len(marks), list(marks)) == (2, [A, B])
    assert [s in marks for s in (A, C, ("c", "t", 9))] == [True, True, False]
    assert marks[A] == Mark(position=5, term=3)


def test_a_mark_without_a_term_is_suspect_only_behind_the_end() -> None:
    unknown = StreamOffset(positions={A: 5})

    assert list(Marks(unknown, [A]).suspects({A: SplitEnd(end=9, term=4)})) == []
    assert list(Marks(unknown, [A]).suspects({A: SplitEnd(end=4, term=4)})) == [A]
    assert list(Marks(READ, [A]).suspects({A: SplitEnd(end=9, term=4)})) == [A]


def test_a_deleted_split_is_a_loss_only_if_it_was_not_read_to_its_stop() -> None:
    stops = {s: {STOP: 7} for s in (A, B, C)}
    held = StreamOffset(positions={A: 5, B: 7, C: None}, attributes=stops)

    found = look(held, {}, deleted=[A, B, C, ("c", "gone", 0)])

    one = StreamOffset(positions={A: None, B: 0}, attributes={A: {STOP: 1}, B: {STOP: 0}})
    assert look(one, {}, deleted=[A, B]) == Look(deleted={A: 1}), "nothing was read of it"
    assert found == Look(deleted={A: 7, C: 7})
    assert found.unknown(held) == {B}


def test_splits_at_their_end_are_those_that_were_read_exactly_to_it() -> None:
    answers = {A: SplitEnd(end=5), B: SplitEnd(end=9), ("c", "other", 0): SplitEnd(end=5)}
    marks = Marks(READ, list(answers))

    assert at_end(marks, answers) == [A]
    assert at_end(dict(marks), answers) == [A], "any mapping of marks"
    assert at_end(Marks(READ, [C]), {C: SplitEnd(end=0)}) == [C], "an empty split"


def test_a_query_that_ends_by_itself_waits_for_what_may_still_come() -> None:
    base = StreamOffset(positions={A: 5, B: 5, C: 5})
    short = look(base, {A: SplitEnd(end=3)})

    assert short.awaited(base, {}, heard=(), mute=()) == frozenset(), "none of them exists"
    assert short.awaited(base, {A: 5, B: 6, C: 5}, heard=(), mute=()) == {B}, "not read to its end"
    unread = StreamOffset(positions={A: None, B: None})
    assert Look().awaited(unread, {A: 1, B: 0}, heard=(), mute=()) == {A}, "nothing was read"
    assert Look().awaited(unread, {}, heard=(), mute=()) == frozenset(), "none of them has a target"
    assert short.awaited(base, {}, heard={A}, mute={C}) == {A, C}, "to be checked, and silent"
    assert Look(ends={A: 9}, deleted={B: 9}).awaited(base, {A: 9, B: 9}, heard=(), mute=()) == (
        frozenset()
    ), "known, and gone"


def test_an_empty_split_of_which_nothing_was_read_needs_no_check() -> None:
    base = StreamOffset(epoch=1, positions={("c", "t", 0): None})

    marks = Marks(base, [("c", "t", 0)])
    assert list(marks.suspects({("c", "t", 0): SplitEnd(end=0)})) == []
    assert marks.are_continued({("c", "t", 0): SplitEnd(end=0)})


def test_a_mark_that_was_confirmed_without_former_leaders_adds_no_empty_entry() -> None:
    split_id = ("c", "t", 0)
    base = StreamOffset(epoch=1, positions={split_id: 5})
    found = Confirmed(mark=mark_of(base, split_id), term=3, past=())

    confirmed_base = with_confirmed(base, {split_id: found})

    assert (confirmed_base.terms, confirmed_base.term_ends) == ({split_id: 3}, {})


def test_only_a_whole_log_that_was_checked_up_to_the_mark_is_confirmed() -> None:
    mark = Mark(position=5, term=3)
    whole = SplitEnd(end=9, term=4, checked=mark)
    other = replace(mark, position=4)

    assert confirmed(READ, {A: whole}) == {A: Confirmed(mark=mark, term=4, past=())}
    for answer in (
        replace(whole, checked=None),
        replace(whole, cut=4),
        replace(whole, term=None),
        replace(whole, checked=other),
    ):
        assert confirmed(READ, {A: answer}) == {}
    assert confirmed(READ, {("c", "gone", 0): whole}) == {}


def test_what_was_confirmed_of_splits_that_have_left_is_forgotten() -> None:
    known = Confirmed(mark=mark_of(READ, A), term=4, past=())

    assert confirmed(READ, {}, {A: known, ("c", "gone", 0): known}) == {A: known}
