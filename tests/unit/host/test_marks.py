"""Marks of splits: those that are made when they are asked for say what a table of them says."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from balanced_source.api import IDENTITY, STOP, SplitId
from balanced_source.documents.stream_offset import StreamOffset, TermEnd
from balanced_source.host.ends import (
    Mark,
    Marks,
    SplitEnd,
    are_continued,
    at_end,
    doubtful,
    mark_of,
    marks,
    needs_check,
)

A, B, C = ("c", "t", 0), ("c", "t", 1), ("c", "t", 2)
SPLITS: list[SplitId] = [A, B, C]

identities = st.sampled_from([None, "first", "second"])
terms = st.one_of(st.none(), st.integers(1, 3))
answers = st.dictionaries(
    st.sampled_from(SPLITS),
    st.builds(SplitEnd, end=st.integers(0, 3), identity=identities, term=terms),
)


@st.composite
def offsets(draw: st.DrawFn) -> StreamOffset:
    """Some of the splits, with tables that lack some of them."""
    held = draw(st.lists(st.sampled_from(SPLITS), unique=True))
    named = {s: identity for s in held if (identity := draw(identities)) is not None}
    under = {s: term for s in held if (term := draw(terms)) is not None}
    return StreamOffset(
        positions={s: draw(st.one_of(st.none(), st.integers(0, 3))) for s in held},
        terms=under,
        attributes={s: {IDENTITY: identity} for s, identity in named.items()},
    )


@given(offsets(), answers)
def test_marks_that_are_made_when_asked_for_say_the_same_as_a_table(
    base: StreamOffset, known: Mapping[SplitId, SplitEnd]
) -> None:
    lazy, table = Marks(base, list(known)), marks(base)

    assert are_continued(lazy, known) == are_continued(table, known)
    assert at_end(lazy, known) == at_end(table, known)
    assert doubtful(lazy, known) == doubtful(table, known)


@given(offsets(), answers)
def test_an_answer_that_continues_its_mark_needs_no_check(
    base: StreamOffset, known: Mapping[SplitId, SplitEnd]
) -> None:
    table = marks(base)
    checked = {s: table[s] for s in known if s in table and needs_check(table[s], known[s])}

    assert doubtful(table, known) == checked
    assert not (checked and are_continued(table, known))


@pytest.mark.parametrize(
    ("answer", "is_continued"),
    [
        (SplitEnd(end=5, identity="first", term=3), True),
        (SplitEnd(end=4, identity="first", term=3), False),
        (SplitEnd(end=5, identity="first", term=4), False),
        (SplitEnd(end=5, identity="first"), True),
        (SplitEnd(end=5, identity="second", term=3), False),
        (SplitEnd(end=5, term=3), False),
    ],
    ids=["the same", "before it", "another leader", "no leader", "another split", "no identity"],
)
def test_an_answer_follows_its_mark(answer: SplitEnd, *, is_continued: bool) -> None:
    base = StreamOffset(positions={A: 5, B: 7}, terms={A: 3}, attributes={A: {IDENTITY: "first"}})
    whole = {B: SplitEnd(end=7)}

    for known in (Marks(base, SPLITS), marks(base)):
        assert are_continued(known, {A: answer, **whole}) is is_continued
        assert are_continued(known, {**whole, A: answer}) is is_continued
        assert are_continued(known, whole), "only splits with an answer count"
        assert not are_continued(known, {C: SplitEnd(end=0)}), "it has no mark"


def test_the_marks_of_an_offset_are_those_of_each_of_its_splits() -> None:
    past = (TermEnd(3, 5),)
    base = StreamOffset(
        positions={A: 5, B: None},
        terms={A: 3},
        term_ends={A: past},
        attributes={A: {IDENTITY: "first", STOP: 9}},
    )

    assert marks(base) == {
        A: Mark(position=5, term=3, identity="first", past=past, stop=9),
        B: Mark(position=0),
    }
    assert marks(base)[A] == mark_of(base, A)


def test_a_split_is_finished_once_it_is_read_to_its_stop() -> None:
    read = [Mark(position=position, stop=5).is_finished for position in (4, 5, 6)]

    assert read == [False, True, True]
    assert not Mark(position=5).is_finished
    assert Mark(position=0, stop=0).is_finished
