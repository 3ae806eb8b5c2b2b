"""Which position of a split counts: the one it was assigned at, or one that its host reports."""

from typing import Any

import pytest

from balanced_source.api import IDENTITY, Position, SplitId
from balanced_source.connectors.kafka import KafkaPartitionSplit
from balanced_source.coordinator.state import (
    CoordinatorState,
    HostState,
    Revocation,
    believed_position,
    reported_position,
    with_next_epoch,
)
from balanced_source.coordinator.tracker import SplitAssignmentTracker
from balanced_source.documents.report import HostReport
from balanced_source.lifecycles import HostPhase

A, B, C, D = (("c", "t", number) for number in range(4))
OTHER = {A: {IDENTITY: "second"}}


def split(split_id: SplitId = A, offset: int = 50) -> KafkaPartitionSplit:
    return KafkaPartitionSplit(
        cluster="c", topic="t", partition=int(split_id[2]), offset=offset, topic_id="first"
    )


def report(**more: Any) -> HostReport:
    return HostReport(incarnation=1, **{"epoch": 3, **more})


@pytest.mark.parametrize(
    ("found", "since", "expected"),
    [
        (report(positions={A: 40}), None, 40),
        (report(positions={A: 40}), 3, 40),
        (report(positions={A: 40}), 4, 50),
        (report(positions={A: 40}), 0, 50),
        (report(positions={A: 60}), 4, 60),
        (report(positions={A: 60}), 0, 60),
        (report(retained={A: 60}), None, 50),
        (report(retained={A: 60}), 4, 50),
        (report(positions={A: 60}, attributes=OTHER), None, 50),
        (report(), None, 50),
        (report(), 4, 50),
    ],
)
def test_a_host_that_has_adopted_a_split_says_where_it_is(
    found: HostReport, since: int | None, expected: Position
) -> None:
    """Any other host can only move it forward."""
    assert believed_position(found, split(), since=since, is_reclaimed=False) == expected


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (report(retained={A: 60}), 60),
        (report(retained={A: 40}), 50),
        (report(positions={A: 70}, retained={A: 60}), 70),
        (report(positions={A: 55}, retained={A: 60}), 60),
        (report(retained={A: 60}, attributes=OTHER), 50),
    ],
)
def test_what_a_host_retains_counts_for_a_split_that_came_back(
    found: HostReport, expected: Position
) -> None:
    assert believed_position(found, split(), since=4, is_reclaimed=True) == expected


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (report(positions={A: 40}, retained={A: 60}), 40),
        (report(retained={A: 60}), 60),
        (report(retained={A: 40}), 50),
        (report(), 50),
        (report(positions={A: 40}, attributes=OTHER), 50),
    ],
)
def test_a_holder_counts_also_backwards_and_what_is_retained_only_forward(
    found: HostReport, expected: Position
) -> None:
    assert reported_position(found, split()) == expected


def spread() -> CoordinatorState[Any]:
    """Return a state with readers on two hosts, of which one has not reported."""
    first = report(positions={A: 70, C: 10}, retained={D: 99})
    active = HostState(phase=HostPhase.ACTIVE, incarnation=1, report=first, addressed_epoch=1)
    tracker = SplitAssignmentTracker(uncheckpointed={D: 0}, by_checkpoint={4: {C: 2}})
    return CoordinatorState(
        parallelism=3,
        epoch=4,
        hosts={"0": active, "1": HostState()},
        owners={A: 0, B: 1, C: 2, D: 0},
        splits={s: split(s) for s in (A, B, C, D)},
        tracker=tracker,
        reclaimed=frozenset({D}),
    )


def test_positions_of_many_splits_are_those_of_each() -> None:
    state, expected = spread(), {A: 70, B: 50, C: 50, D: 99}

    assert state.positions(expected) == expected
    assert {s: state.position(s) for s in expected} == expected
    assert {s: found.position for s, found in state.splits_now(expected).items()} == expected
    assert {s: state.split(s).position for s in expected} == expected


def test_a_split_is_held_by_the_host_that_has_to_release_it() -> None:
    state = spread()
    leaving: dict[SplitId, Revocation[Any]] = {A: Revocation(host="1", epoch=5, split=split())}
    state = CoordinatorState(
        parallelism=3, hosts=state.hosts, owners=state.owners, revoking=leaving
    )
    unknown = ("c", "t", 9)

    assert [state.holder_of(s) for s in (A, B, C, D, unknown)] == ["1", "1", "0", "0", None]
    assert [state.is_held_by("0")(s) for s in (A, B, C, D)] == [False, False, True, True]
    assert [state.is_held_by("1")(s) for s in (A, B, C, D)] == [True, True, False, False]
    assert not state.is_held_by("0")(unknown)


def test_what_was_reclaimed_counts_until_its_host_has_adopted_it() -> None:
    """From then on the host's own position counts."""
    tracker = SplitAssignmentTracker(uncheckpointed={B: 0}, by_checkpoint={1: {A: 0}})
    state: CoordinatorState[Any] = CoordinatorState(
        epoch=1, tracker=tracker, reclaimed=frozenset({A, B, C})
    )

    following = with_next_epoch(state, settings="digest")

    assert following.reclaimed == {A, B}
    assert (following.epoch, following.settings) == (2, "digest")
    assert following.tracker.epochs() == {A: 1, B: 2}
