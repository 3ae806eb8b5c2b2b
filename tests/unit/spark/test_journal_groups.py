"""Two sources with journals, such as Kinesis streams, that wait for each other in event time."""

from collections import Counter
from pathlib import Path

import pytest

from balanced_source.api import MAX_WATERMARK, MIN_WATERMARK
from balanced_source_spark.group_alignment import GroupAlignment
from balanced_source_spark.options import AlignmentOptions
from support.journal_query import JournalQuery
from support.tapes import TapeHalf, shelf

DRIFT = 1000
TURNS = 200


class Told(GroupAlignment):
    """What a driver hears of the other source: what that one has reported, at once."""

    def __init__(self) -> None:
        super().__init__("g", max_drift=DRIFT, idle_timeout=3600, newest=lambda: None)
        self.newest = MIN_WATERMARK

    def others(self) -> int:
        return self.newest


class Member:
    """A source of the group, with one tape."""

    def __init__(self, folder: Path, begin: int, step: int, *, knows_ends: bool = False) -> None:
        self.half = TapeHalf(shelf(1, 20), is_timed=True, knows_ends=knows_ends)
        self.half.shelf.times = dict.fromkeys(self.half.shelf.lengths, (begin, step))
        alignment = AlignmentOptions(max_drift=DRIFT, idle_timeout=0.0, group="g")
        self.query = JournalQuery(folder, self.half, max_records=None, alignment=alignment)
        self.told = Told()
        self.query.planner.__dict__["_group"] = self.told

    @property
    def watermark(self) -> int:
        """What its driver reports."""
        alignment = self.query.planner._runtime._progress.alignment
        return MIN_WATERMARK if alignment is None else alignment.watermark

    @property
    def is_read(self) -> bool:
        return self.query.records == Counter(self.half.shelf.records())


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param((0, 100), (0, 100), id="alike"),
        pytest.param((0, 100), (50 * DRIFT, 100), id="one much later"),
        pytest.param((0, 10 * DRIFT), (5 * DRIFT, 10 * DRIFT), id="gaps longer than the drift"),
        pytest.param((0, 100), (0, 30 * DRIFT), id="one with gaps"),
    ],
)
def test_they_do_not_wait_for_each_other_without_end(
    tmp_path: Path, first: tuple[int, int], second: tuple[int, int]
) -> None:
    """No micro-batch tells how far a source is that only waits: its report has to."""
    members = Member(tmp_path / "a", *first), Member(tmp_path / "b", *second)
    try:
        for _ in range(TURNS):
            for one, other in (members, members[::-1]):
                one.told.newest = other.watermark
                one.query.trigger()
            if all(member.is_read for member in members):
                break
        assert [member.is_read for member in members] == [True, True]
    finally:
        for member in members:
            member.query.close()


@pytest.mark.parametrize("knows_ends", [False, True])
def test_a_source_that_is_read_holds_the_other_no_longer_than_its_timeout(
    tmp_path: Path, *, knows_ends: bool
) -> None:
    """One that knows its ends plans no further micro-batch, which would find nothing."""
    member = Member(tmp_path / "a", 0, 100, knows_ends=knows_ends)
    member.told.newest = MAX_WATERMARK
    for _ in range(TURNS):
        member.query.trigger()
        if member.is_read and member.watermark == MAX_WATERMARK:
            break
    assert member.watermark == MAX_WATERMARK
    member.query.close()
