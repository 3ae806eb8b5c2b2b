"""All reports count before anything is assigned."""

from dataclasses import replace

import pytest

from balanced_source.api import SplitId
from balanced_source.connectors.discovery import DiscoveryState
from balanced_source.connectors.kafka import KafkaPartitionSplit
from balanced_source.coordinator import (
    CallCompleted,
    Checkpoint,
    CoordinatorState,
    Effect,
    ExecuteCall,
    HostRole,
    HostState,
    PublishAssignment,
    ReportReceived,
    SourceCoordinator,
)
from balanced_source.coordinator.recovery import waiting_for
from balanced_source.documents.report import HostReport
from balanced_source.lifecycles import HostPhase
from support.world import Broker, kafka_source

A: SplitId = ("c", "t", 0)


def partition(offset: int) -> KafkaPartitionSplit:
    return KafkaPartitionSplit(cluster="c", topic="t", partition=0, offset=offset)


def reports(owner: int, hosts: tuple[str, ...]) -> list[HostReport]:
    """One host per report.

    The one of reader `owner` reads A at 1001, others have kept it from former times.
    """
    holder = hosts[owner % len(hosts)]
    return [
        HostReport(
            host=h, incarnation=1, epoch=3, parallelism=2, owners={A: owner}, positions={A: 1001}
        )
        if h == holder
        else HostReport(host=h, incarnation=1, epoch=3, parallelism=2, retained={A: 4})
        for h in hosts
    ]


@pytest.mark.parametrize("owner", [0, 1])
@pytest.mark.parametrize("hosts", [("0",), ("0", "1")])
def test_a_pending_split_starts_at_the_position_that_a_later_reader_reports(
    owner: int, hosts: tuple[str, ...]
) -> None:
    """The report of the first reader passes the gate; what the second holds stays."""
    broker = Broker()
    broker.create("c", "t", [0], end=9000)
    state: CoordinatorState[KafkaPartitionSplit] = CoordinatorState(
        epoch=2,
        parallelism=2,
        hosts={h: HostState(phase=HostPhase.LOST, incarnation=0) for h in hosts},
    )
    waiting = DiscoveryState(unassigned={A: partition(9000)}, discovered=frozenset("c"))
    coordinator: SourceCoordinator[KafkaPartitionSplit, DiscoveryState[KafkaPartitionSplit]] = (
        SourceCoordinator(
            kafka_source("c"), restored=Checkpoint(coordinator=state, enumerator=waiting)
        )
    )
    effects: list[Effect] = coordinator.start(now=0.0)
    for call in [effect for effect in effects if isinstance(effect, ExecuteCall)]:
        effects += coordinator.handle(
            CallCompleted(call.call_id, broker.execute(call.call)), now=0.0
        )

    for report in reports(owner, hosts):
        effects += coordinator.handle(ReportReceived(report), now=0.0)

    assert coordinator.state.position(A) == 1001
    published = [
        effect.assignment.starts.get(A, 1001)
        for effect in effects
        if isinstance(effect, PublishAssignment)
    ]
    assert set(published) == {1001}


def missing(**host: object) -> CoordinatorState[KafkaPartitionSplit]:
    """Host 0 waits at the gate after a loss of the state; host 1 is not there."""
    there = HostState(phase=HostPhase.RECOVERING, incarnation=1)
    away = HostState(**{"phase": HostPhase.LOST, **host})  # type: ignore[arg-type]
    return CoordinatorState(lineage=2, parallelism=2, hosts={"0": there, "1": away})


@pytest.mark.parametrize(
    ("state", "awaited"),
    [
        (missing(), ("1",)),
        (missing(role=HostRole.JOINING), ()),
        (missing(role=HostRole.LEAVING), ("1",)),
        (missing(role=HostRole.LEAVING, known_from=3), ()),
        (missing(role=HostRole.DRAINING, known_from=3), ()),
        (missing(phase=HostPhase.ACTIVE), ()),
        (missing(phase=HostPhase.EXPECTED), ("1",)),
        (replace(missing(phase=HostPhase.EXPECTED), lineage=1), ()),
        (replace(missing(phase=HostPhase.EXPECTED), lineage=1, has_history=True), ("1",)),
    ],
)
def test_the_gate_waits_for_hosts_that_may_hold_splits(
    state: CoordinatorState[KafkaPartitionSplit], awaited: tuple[str, ...]
) -> None:
    assert waiting_for(state) == awaited
