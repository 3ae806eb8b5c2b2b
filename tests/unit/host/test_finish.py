"""When a reader host has read all that it will ever get."""

from dataclasses import replace

import pytest

from balanced_source.api import STOP
from balanced_source.documents.assignment import Assignment
from balanced_source.documents.journal import JournalPoint
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.host import is_finished
from balanced_source.host.finish import is_read, with_ends

S, T = ("c", "t", 0), ("c", "t", 1)
ASSIGNED = Assignment(
    epoch=3,
    parallelism=2,
    incarnations={"0": 1},
    owners={S: 0, T: 1},
    attributes={S: {"stop": 5}, T: {"stop": 0}},
    no_more_splits=frozenset({0, 1}),
)
READ = StreamOffset(
    epoch=3, parallelism=2, readers=(0, 1), owners={S: 0, T: 1}, positions={S: 5, T: 0}
)


@pytest.mark.scenario("H7")
def test_all_stops_are_reached_and_no_more_splits_come() -> None:
    """A split whose start is its stop is finished from the beginning."""
    assert is_finished(READ, ASSIGNED)
    assert is_finished(replace(READ, positions={S: 7, T: 3}), ASSIGNED)


@pytest.mark.parametrize(
    ("offset", "assignment"),
    [
        pytest.param(replace(READ, positions={S: 4, T: 0}), ASSIGNED, id="a record is left"),
        pytest.param(
            READ, replace(ASSIGNED, no_more_splits=frozenset({0})), id="a reader may get more"
        ),
        pytest.param(READ, replace(ASSIGNED, attributes={S: {"stop": 5}}), id="a split has no end"),
        pytest.param(READ, replace(ASSIGNED, epoch=4), id="a newer epoch is not adopted yet"),
        pytest.param(StreamOffset(), replace(ASSIGNED, epoch=0), id="nothing was assigned yet"),
    ],
)
def test_any_other_answer_continues(offset: StreamOffset, assignment: Assignment) -> None:
    assert not is_finished(offset, assignment)


def test_a_host_without_splits_finishes_when_no_more_splits_come() -> None:
    empty = replace(READ, owners={}, positions={})

    assert is_finished(empty, replace(ASSIGNED, owners={}, attributes={}))


def test_a_host_without_readers_runs_until_the_source_is_finished() -> None:
    """It hands its splits over, and would be reported as ended although it is unbounded."""
    idle = StreamOffset(epoch=3, parallelism=2)

    assert not is_finished(idle, replace(ASSIGNED, no_more_splits=frozenset()))
    assert not is_finished(idle, replace(ASSIGNED, no_more_splits=frozenset({0})))
    assert is_finished(idle, ASSIGNED)


def test_a_split_that_its_reader_has_finished_needs_no_stop() -> None:
    """Its reader says so, in the journal; no one knew its end before."""
    point = JournalPoint(journal="j", number=7, finished=frozenset({S}))
    open_end = replace(ASSIGNED, attributes={T: {"stop": 0}})
    read = replace(READ, positions={S: 4, T: 0}, journal=point, attributes={T: {"stop": 1}})

    assert is_finished(read, open_end)
    assert not is_finished(replace(read, journal=replace(point, finished=frozenset())), open_end)
    assert (is_read(read, S), is_read(read, T)) == (True, False)


def test_a_split_at_an_unknown_position_is_not_read_to_its_end() -> None:
    """Nothing of it was read, so its position counts as 0."""
    unread = replace(READ, positions={S: 5, T: None})

    assert is_finished(unread, ASSIGNED)
    assert not is_finished(unread, replace(ASSIGNED, attributes={S: {"stop": 5}, T: {"stop": 1}}))


def test_a_report_gives_a_stop_to_splits_whose_end_was_found() -> None:
    """The operator does not see the journal."""
    gone = ("c", "gone", 0)
    point = JournalPoint(journal="j", number=7, finished=frozenset({S, T, gone}))
    known = {S: {"zone": "x"}, T: {STOP: 8}}
    read = replace(READ, positions={S: 4, T: 0}, attributes=known, journal=point)

    assert with_ends(read) == {S: {"zone": "x", STOP: 4}, T: {STOP: 8}}
    unread = replace(read, positions={S: None, T: 0})
    assert with_ends(unread) == {S: {"zone": "x", STOP: 0}, T: {STOP: 8}}
    assert with_ends(replace(read, journal=None)) == known
    assert with_ends(replace(read, journal=replace(point, finished=frozenset()))) == known
