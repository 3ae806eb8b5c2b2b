"""Only what was not read to its end may be lost with a deleted split."""

from types import SimpleNamespace
from typing import Any

from balanced_source.api import SplitId
from balanced_source.connectors.discovery.gone import read_to_end, unread
from balanced_source.connectors.discovery.values import DiscoveryState
from balanced_source.connectors.kafka import KafkaPartitionSplit
from balanced_source.coordinator import CoordinatorState
from balanced_source.coordinator.context import CoordinatorContext


def split(partition: int, offset: int) -> KafkaPartitionSplit:
    return KafkaPartitionSplit(
        cluster="c", topic="t", partition=partition, offset=offset, stopping_offset=5
    )


def test_splits_that_were_read_to_their_end_are_not_said_to_be_unread() -> None:
    """Of three deleted ones, one waits at its stop, and one was reported to have ended."""
    waiting, ended, behind = split(0, 5), split(1, 3), split(2, 3)
    everything = {s.split_id: s for s in (waiting, ended, behind)}
    state: DiscoveryState[Any] = DiscoveryState(
        unassigned=everything, finished=frozenset({ended.split_id})
    )
    context: CoordinatorContext[Any] = CoordinatorContext(CoordinatorState())
    asked: list[SplitId] = []
    source: Any = SimpleNamespace(
        unread=lambda splits, **_: asked.extend(s.split_id for s in splits) or []
    )

    unread(everything, state, context, source, exists=False)

    assert asked == [behind.split_id]
    assert read_to_end(everything, state, context) == {waiting.split_id, ended.split_id}
