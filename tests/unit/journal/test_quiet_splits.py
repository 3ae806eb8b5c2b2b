"""When splits without new records had nothing more: what micro-batches pass on of it."""

from balanced_source.documents.assignment import Assignment
from balanced_source.documents.journal import JournalPoint, JournalRecord, RecordKey
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.host.adoption import adopt
from balanced_source.host.journaling import delivered

A, B = ("numbers", 0), ("numbers", 1)
KEY = RecordKey("a5f3", 7, 0)
END = StreamOffset(
    epoch=1,
    parallelism=1,
    readers=(0,),
    owners={A: 0, B: 0},
    positions={A: 5, B: 6},
    journal=JournalPoint(journal="a5f3", number=7, read_up_to={A: 100, B: 200}),
)


def after(record: JournalRecord) -> dict[tuple[str, int], int]:
    point = delivered(END, [record]).journal
    assert point is not None
    return dict(point.read_up_to)


def test_a_newer_time_replaces_the_former_one() -> None:
    assert after(JournalRecord(key=KEY, read_up_to={A: 300})) == {A: 300, B: 200}


def test_a_split_that_has_moved_or_ended_has_none() -> None:
    moved = JournalRecord(key=KEY, starts={A: 5, B: 6}, ends={A: 9}, finished=frozenset({B}))

    assert after(moved) == {}


def test_a_split_that_another_assignment_begins_again_has_none() -> None:
    assignment = Assignment(
        lineage="l",
        epoch=2,
        parallelism=2,
        owners={A: 1, B: 0},
        starts={A: 5, B: 6},
        since={B: 2},
        incarnations={"": 1},
    )

    point = adopt(END, assignment, host="").journal

    assert point is not None
    assert point.read_up_to == {A: 100}, "B may have been elsewhere meanwhile"
