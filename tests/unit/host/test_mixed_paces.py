"""Shares by time, of readers whose speeds all differ, and of splits of which some can be cut."""

from collections.abc import Callable, Mapping

import pytest

from balanced_source.api import SplitId
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.host.pacing import Pace, paced
from unit.host.test_pacing import ALONE, HELD, SPEEDS, WHOLE, base, block

MayCut = Callable[[SplitId], bool]


def one_block_each(*speeds: float) -> Mapping[SplitId, int]:
    """How far readers of these speeds read a block of 100 records."""
    readers = tuple(range(len(speeds)))
    offset = StreamOffset(
        epoch=1,
        parallelism=len(speeds),
        readers=readers,
        owners={block(reader): reader for reader in readers},
        positions={block(reader): 0 for reader in readers},
    )
    return paced(
        offset,
        {block(reader): 100 for reader in readers},
        dict(enumerate(speeds)),
        no_more_splits=(),
        asked_for=lambda _: None,
        may_cut=lambda _: True,
    ).positions


@pytest.mark.parametrize(
    ("speeds", "read"),
    [
        ((100.0, 10.0), (100, 10)),
        ((10.0, 100.0), (10, 100)),
        ((100.0, 50.0, 25.0, 12.5, 6.25), (100, 100, 100, 50, 25)),
        ((6.25, 25.0, 100.0, 12.5, 50.0), (25, 100, 100, 50, 100)),
    ],
)
def test_most_readers_read_everything(speeds: tuple[float, ...], read: tuple[int, ...]) -> None:
    """Of two readers the faster one, and of many those up to the middle one."""
    assert tuple(one_block_each(*speeds).values()) == read


def test_a_reader_that_is_very_slow_reads_a_record() -> None:
    assert one_block_each(100.0, 0.001)[block(1)] == 1


def share(may_cut: MayCut) -> Pace:
    return paced(
        base(HELD), WHOLE, SPEEDS, no_more_splits=(), asked_for=lambda _: None, may_cut=may_cut
    )


def test_a_block_that_cannot_be_cut_waits_behind_one_that_was_cut() -> None:
    assert share(lambda s: s == block(6)) == Pace({**WHOLE, block(6): 20, block(7): 0})


def test_a_block_that_can_be_cut_waits_behind_one_that_was_read_as_a_whole() -> None:
    assert share(lambda s: s == block(7)) == Pace({**WHOLE, block(6): 100, block(7): 0})


@pytest.mark.parametrize("cut", [block(6), block(7)])
def test_idle_readers_take_no_parts_if_a_split_cannot_be_cut(cut: SplitId) -> None:
    """Whole shares are cut, and so would be that split."""
    reached = dict.fromkeys(ALONE, 100)

    found = paced(
        base(ALONE),
        reached,
        SPEEDS,
        no_more_splits=range(4),
        asked_for=lambda _: None,
        may_cut=lambda s: s == cut,
    )

    assert found == Pace(reached)


def test_a_block_of_which_nothing_was_read_begins_at_its_first_record() -> None:
    offset = StreamOffset(
        epoch=1,
        parallelism=2,
        readers=(0, 1),
        owners={block(0): 0, block(1): 1},
        positions={block(0): None, block(1): None},
    )

    found = paced(
        offset,
        {block(0): 1, block(1): 100},
        {0: 100.0, 1: 10.0},
        no_more_splits=(),
        asked_for=lambda _: None,
        may_cut=lambda _: True,
    )

    assert found == Pace({block(0): 1, block(1): 1})
