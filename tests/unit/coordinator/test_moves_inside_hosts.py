"""A split that moves inside its host needs no start, unless the host may not hold it."""

from typing import Any

import pytest

from balanced_source.api import ReaderInfo, SplitId
from balanced_source.coordinator.context import CoordinatorContext
from balanced_source.coordinator.state import CoordinatorState, HostState, Revocation
from balanced_source.coordinator.tracker import SplitAssignmentTracker
from balanced_source.lifecycles import HostPhase
from support.world import kafka_source

A: SplitId = ("c", "t", 0)
B: SplitId = ("c", "t", 1)
SPLIT = kafka_source("c").create_split(A, 5, {})


def context(
    *phases: HostPhase, revoking: bool = False, owners: dict[SplitId, int] | None = None
) -> CoordinatorContext[Any]:
    """Return a context with four readers, whose hosts are in these phases."""
    owned = {A: 0} if owners is None else owners
    hosts = {str(number): HostState(phase=phase) for number, phase in enumerate(phases)}
    state: CoordinatorState[Any] = CoordinatorState(
        epoch=3,
        parallelism=4,
        hosts=hosts,
        owners=owned,
        splits={s: kafka_source("c").create_split(s, 5, {}) for s in owned},
        tracker=SplitAssignmentTracker(),
        revoking={A: Revocation(host="0", epoch=3, split=SPLIT)} if revoking else {},
    )
    made = CoordinatorContext(state)
    made.set_readers({subtask: ReaderInfo(subtask_id=subtask) for subtask in range(4)})
    return made


@pytest.mark.parametrize(
    ("phases", "revoking", "since"),
    [
        ((HostPhase.ACTIVE,), False, None),
        ((HostPhase.LOST,), False, None),
        ((HostPhase.EXPECTED,), False, 0),
        ((HostPhase.ACTIVE,), True, 0),
        ((HostPhase.ACTIVE, HostPhase.ACTIVE), False, None),
        ((HostPhase.EXPECTED, HostPhase.ACTIVE), False, 0),
        ((HostPhase.ACTIVE, HostPhase.ACTIVE), True, 0),
    ],
)
def test_a_split_gets_a_start_if_its_host_may_have_let_go_or_never_had_it(
    phases: tuple[HostPhase, ...], revoking: bool, since: int | None
) -> None:
    moving = context(*phases, revoking=revoking)

    moving.move_splits({A: 2})

    assert moving.state.owners == {A: 2}
    assert moving.state.tracker.epoch_of(A) == since
    assert moving.turn.is_changed


def test_only_splits_that_change_their_host_are_revoked() -> None:
    moving = context(HostPhase.ACTIVE, HostPhase.ACTIVE, owners={A: 0, B: 0})

    moving.move_splits({A: 2, B: 1})

    assert moving.state.owners == {A: 2, B: 1}
    assert {s: (r.host, r.epoch) for s, r in moving.state.revoking.items()} == {B: ("0", 4)}


def test_a_move_to_the_owner_is_no_change() -> None:
    moving = context(HostPhase.ACTIVE)
    before = moving.state

    moving.move_splits({A: 0})

    assert moving.state is before
    assert not moving.turn.is_changed
