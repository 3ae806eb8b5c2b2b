"""Small values that the coordinator decides by."""

from dataclasses import replace
from typing import Any

import pytest

from balanced_source.api import IDENTITY, Position, SplitId
from balanced_source.connectors.kafka import KafkaPartitionSplit
from balanced_source.coordinator.context import CoordinatorContext
from balanced_source.coordinator.phase import complete_epoch
from balanced_source.coordinator.state import (
    CoordinatorState,
    HostRole,
    HostState,
    newest,
    run_by,
    without_former,
)
from balanced_source.coordinator.state_codec import _host_from_json, _host_to_json
from balanced_source.coordinator.tracker import SplitAssignmentTracker
from balanced_source.coordinator.view import AttributeTable
from balanced_source.documents.report import HostReport
from balanced_source.errors import ContractViolationError
from balanced_source.lifecycles import HostPhase
from support.world import kafka_source

A: SplitId = ("c", "t", 0)
B: SplitId = ("c", "t", 1)


def partition(number: int, topic_id: str | None = "first") -> KafkaPartitionSplit:
    return KafkaPartitionSplit(
        cluster="c", topic="t", partition=number, offset=0, topic_id=topic_id
    )


def host(epoch: int, *, addressed: int = 1, phase: HostPhase = HostPhase.ACTIVE) -> HostState:
    report = HostReport(incarnation=1, epoch=epoch, positions={A: 5})
    return HostState(incarnation=1, phase=phase, report=report, addressed_epoch=addressed)


@pytest.mark.parametrize(
    ("positions", "furthest"), [((3, 7, 5), 7), ((None, 0), 0), ((None, None), None), ((), None)]
)
def test_the_newest_position_is_the_furthest(
    positions: tuple[Position, ...], furthest: Position
) -> None:
    assert newest(*positions) == furthest


@pytest.mark.parametrize(
    ("known", "acknowledged"),
    [
        (host(5), 5),
        (host(5, addressed=5), 5),
        (host(5, addressed=6), 0),  # of its Spark checkpoint, from before it was addressed
        (host(5, addressed=0), 0),
        (host(5, phase=HostPhase.RECOVERING), 0),
        (host(5, phase=HostPhase.LOST), 0),
        (replace(host(5), report=None), 0),
    ],
)
def test_only_an_active_host_acknowledges_an_epoch(known: HostState, acknowledged: int) -> None:
    assert known.acknowledged_epoch == acknowledged


def test_an_epoch_is_complete_when_all_active_hosts_have_adopted_it() -> None:
    away = host(1, phase=HostPhase.LOST)
    state: CoordinatorState[Any] = CoordinatorState(hosts={"0": host(5), "1": host(7), "2": away})

    assert complete_epoch(state, "0", 6) == 6
    assert complete_epoch(state, "1", 9) == 5


@pytest.mark.parametrize(
    ("members", "readers"), [(("0", "1"), [[0, 2, 4], [1, 3]]), (("1",), [[], [0, 1, 2, 3, 4]])]
)
def test_readers_are_dealt_to_members_in_turn(
    members: tuple[str, ...], readers: list[list[int]]
) -> None:
    assert [list(run_by(name, members, 5)) for name in ("0", "1")] == readers


def test_positions_of_a_former_topic_are_left_out_of_a_report() -> None:
    attributes = {A: {IDENTITY: "first"}, B: {IDENTITY: "first"}}
    found = HostReport(incarnation=1, positions={A: 5}, retained={B: 6}, attributes=attributes)

    assert without_former(found, {A: partition(0), B: partition(1)}) is found
    after = without_former(found, {A: partition(0, "second"), B: partition(1)})
    assert (after.positions, after.retained) == ({}, {B: 6})
    after = without_former(found, {A: partition(0), B: partition(1, "second")})
    assert (after.positions, after.retained) == ({A: 5}, {})


@pytest.mark.parametrize("phase", [HostPhase.RECOVERING, HostPhase.LOST])
def test_a_report_that_waits_is_stored(phase: HostPhase) -> None:
    waiting = host(5, phase=phase)

    assert _host_from_json(_host_to_json(waiting)) == waiting


def test_a_report_of_an_active_host_is_stored_by_its_writer_alone() -> None:
    assert _host_from_json(_host_to_json(host(5))) == replace(host(5), report=None)
    assert _host_from_json(_host_to_json(HostState())) == HostState()
    leaving = HostState(role=HostRole.LEAVING)
    assert _host_from_json(_host_to_json(leaving)) == leaving


def test_attributes_follow_the_splits() -> None:
    table = AttributeTable()

    first = table.of({A: partition(0), B: partition(1, None)})
    assert first == {A: {IDENTITY: "first"}}
    assert table.of({A: replace(partition(0), offset=9), B: partition(1, None)}) is first
    assert table.of({A: partition(0, "second")}) == {A: {IDENTITY: "second"}}
    assert table.of({A: partition(0, None), B: partition(1)}) == {B: {IDENTITY: "first"}}
    assert table.of({}) == {}


def test_a_tracker_is_the_same_if_it_knows_nothing_of_what_is_forgotten() -> None:
    covered, open_ = SplitAssignmentTracker(), SplitAssignmentTracker().record({A: 0})

    assert covered.forget([A]) is covered
    assert open_.forget([]) is open_
    assert open_.forget([A]) == covered
    assert open_.on_checkpoint(3).forget([A]) == covered


def test_an_epoch_says_which_positions_hosts_need_not_keep() -> None:
    """Hosts keep the position of a split without an owner until an epoch leaves it out."""
    context: CoordinatorContext[Any] = CoordinatorContext(
        CoordinatorState(retained=frozenset({A, B}))
    )

    context.forget_splits([("c", "other", 0)])
    before = context.turn.is_changed
    context.forget_splits([A])
    assert (before, context.turn.is_changed) == (False, True)
    assert context.state.retained == {B}


@pytest.mark.parametrize(
    ("interval", "is_once"), [(None, True), (0.0, True), (-1.0, True), (0.5, False)]
)
def test_a_source_without_a_positive_interval_is_discovered_once(
    interval: float | None, *, is_once: bool
) -> None:
    assert kafka_source("c", discovery_interval=interval).discovers_once is is_once


def test_only_registered_readers_can_be_told_that_no_more_splits_come() -> None:
    context: CoordinatorContext[Any] = CoordinatorContext(CoordinatorState())

    with pytest.raises(ContractViolationError, match="reader 3 is not registered"):
        context.signal_no_more_splits(3)
    assert context.state.no_more_splits == frozenset()


def test_requests_of_readers_that_a_host_no_longer_runs_are_forgotten() -> None:
    context: CoordinatorContext[Any] = CoordinatorContext(CoordinatorState())
    context.asked = {0: 2, 1: 1, 2: 4}

    context.renumber_readers({0: 1, 2: 0})

    assert context.asked == {1: 2, 0: 4}


@pytest.mark.parametrize(
    ("role", "is_wanted", "is_going"),
    [
        (HostRole.DRAINING, True, False),
        (HostRole.DRAINING, False, True),
        (HostRole.LEAVING, True, True),
        (HostRole.LEAVING, False, True),
        (HostRole.MEMBER, False, False),
        (HostRole.JOINING, True, False),
    ],
)
def test_a_host_that_drains_counts_as_there_while_it_is_wanted(
    role: HostRole, *, is_wanted: bool, is_going: bool
) -> None:
    assert HostState(role=role).is_going(is_wanted=is_wanted) is is_going
