"""What an enumerator sees of the readers of a driver that has started again."""

from collections.abc import Sequence
from typing import Any

import pytest

from balanced_source.api import SplitId
from balanced_source.connectors.discovery import DiscoveryState
from balanced_source.connectors.kafka import KafkaPartitionSplit
from balanced_source.coordinator import (
    Checkpoint,
    CoordinatorState,
    HostState,
    ReportReceived,
    SourceCoordinator,
)
from balanced_source.documents.report import HostReport
from balanced_source.lifecycles import HostPhase
from support.world import kafka_source

A, B = (("c", "t", number) for number in range(2))


def partition(split_id: SplitId) -> KafkaPartitionSplit:
    return KafkaPartitionSplit(cluster="c", topic="t", partition=int(split_id[2]), offset=5)


@pytest.mark.parametrize("hosts", [("0",), ("0", "1")])
def test_splits_come_back_before_the_readers_of_the_new_driver_can_be_given_any(
    hosts: tuple[str, ...],
) -> None:
    """Otherwise a split that comes back is given to a reader that may already hold another one."""
    waiting = HostReport(incarnation=1, epoch=3, owners={A: 0, B: 0}, positions={A: 5, B: 5})
    there = HostState(
        phase=HostPhase.ACTIVE, incarnation=1, addressed_epoch=3, known_from=1, report=waiting
    )
    state: CoordinatorState[Any] = CoordinatorState(
        epoch=3,
        parallelism=2,
        hosts=dict.fromkeys(hosts, there),
        owners={A: 0, B: 0},
        splits={A: partition(A), B: partition(B)},
    )
    discovery: Any = DiscoveryState(discovered=frozenset("c"))
    coordinator = SourceCoordinator(
        kafka_source("c"), restored=Checkpoint(coordinator=state, enumerator=discovery)
    )
    coordinator.start(now=0.0)
    seen = list[tuple[list[SplitId], list[int]]]()
    take_back = coordinator.enumerator.add_splits_back

    def noted(splits: Sequence[KafkaPartitionSplit], subtask: int) -> None:
        registered = coordinator.enumerator.context.registered_readers()
        seen.append(([s.split_id for s in splits], sorted(registered)))
        take_back(splits, subtask)

    coordinator.enumerator.add_splits_back = noted  # type: ignore[assignment,method-assign]

    again = HostReport(incarnation=2, epoch=3, owners={A: 0}, positions={A: 7})
    coordinator.handle(ReportReceived(again), now=0.0)

    others = [reader for reader in (0, 1) if state.host_of(reader) != "0"]
    assert seen == [([B], others)]
