"""Group K: the split assignment tracker.

K7 to K10 (tombstones upstream) are retention here: see group D.
"""

import pytest

from balanced_source.api import SplitId
from balanced_source.connectors.discovery import DiscoveryState
from balanced_source.coordinator import (
    Checkpoint,
    CoordinatorState,
    SplitAssignmentTracker,
    state_codec,
)
from support.world import UID, kafka_source


def ids(*numbers: int) -> list[SplitId]:
    return [("c", "t", number) for number in numbers]


def owned(**readers: tuple[int, ...]) -> dict[SplitId, int]:
    """``owned(r0=(1, 2))``: splits 1 and 2 are reader 0's."""
    return {split: int(name[1:]) for name, numbers in readers.items() for split in ids(*numbers)}


def two_checkpoints() -> SplitAssignmentTracker:
    first = SplitAssignmentTracker().record(owned(r0=(0,))).on_checkpoint(100)
    return first.record(owned(r0=(3,), r1=(4, 5))).on_checkpoint(101)


@pytest.mark.scenario("K1")
def test_k1_assignments_add_up() -> None:
    """Each split is recorded for the reader that has it."""
    tracker = SplitAssignmentTracker().record(owned(r0=(0,), r1=(1, 2), r2=(3, 4, 5)))

    tracker = tracker.record(owned(r0=(6,), r1=(7, 8)))

    assert tracker.uncheckpointed == owned(r0=(0, 6), r1=(1, 2, 7, 8), r2=(3, 4, 5))


@pytest.mark.scenario("K2")
def test_k2_snapshot_and_restore() -> None:
    """The state that is stored restores an equal tracker."""
    state = CoordinatorState(tracker=two_checkpoints())
    source = kafka_source("c")

    text = state_codec.encode(
        Checkpoint(coordinator=state, enumerator=DiscoveryState()), source, uid=UID
    )

    assert state_codec.decode(text, source).coordinator.tracker == two_checkpoints()


@pytest.mark.scenario("K3")
def test_k3_a_checkpoint_closes_what_was_recorded() -> None:
    """Everything belongs to it, and nothing is left uncheckpointed."""
    tracker = SplitAssignmentTracker().record(owned(r0=(0,), r1=(1, 2))).on_checkpoint(7)

    assert tracker.uncheckpointed == {}
    assert tracker.by_checkpoint == {7: owned(r0=(0,), r1=(1, 2))}


@pytest.mark.scenario("K4")
def test_k4_a_completed_checkpoint_is_forgotten() -> None:
    """Completing 100 leaves exactly what 101 closed."""
    assert two_checkpoints().on_checkpoint_complete(100).by_checkpoint == {
        101: owned(r0=(3,), r1=(4, 5))
    }


@pytest.mark.scenario("K5")
def test_k5_a_reset_gives_back_what_came_later() -> None:
    """Reader 0, reset to 99, cannot know of 0 and 3; what reader 1 got is not its matter."""
    tracker = two_checkpoints()

    assert tracker.uncovered_since(99, of=lambda reader: reader == 0) == owned(r0=(0, 3))
    assert tracker.uncovered_since(100, of=lambda reader: reader == 0) == owned(r0=(3,))
    assert tracker.uncovered_since(101) == {}


def test_a_split_that_moves_is_recorded_for_its_new_reader_alone() -> None:
    """Neither an older checkpoint nor the former reader has it any more."""
    tracker = two_checkpoints().record(owned(r1=(0,)))

    assert tracker.uncovered_since(0, of=lambda reader: reader == 0) == owned(r0=(3,))
    assert tracker.epoch_of(("c", "t", 0)) == 0
    assert tracker.on_checkpoint(102).epoch_of(("c", "t", 0)) == 102
    assert tracker.epoch_of(("c", "t", 99)) is None


def test_a_completed_checkpoint_of_some_readers_leaves_the_others() -> None:
    """Each host completes checkpoints by itself."""
    tracker = two_checkpoints().on_checkpoint_complete(
        101, of=lambda split_id: split_id in owned(r1=(4, 5))
    )

    assert tracker.by_checkpoint == {100: owned(r0=(0,)), 101: owned(r0=(3,))}
