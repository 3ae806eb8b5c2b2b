"""A made-up broker that resolves start and stop offsets as the adapter with a client does."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from balanced_source.api import SplitId
from balanced_source.connectors.kafka import (
    Anchor,
    InitializeKafka,
    KafkaPartitionSplit,
    resolve_start,
    resolve_stop,
)
from support.world import Broker


@dataclass
class ResolvingBroker(Broker):
    """Its records have no times, so no record is at or after any time."""

    def ends_of(self, split_ids: Collection[SplitId], anchor: Anchor) -> dict[SplitId, int]:
        table = self.begins if anchor is Anchor.EARLIEST else self.ends
        return {s: table[s] for s in split_ids if s in table}

    def execute(self, call: Any) -> Any:
        if not isinstance(call, InitializeKafka):
            return super().execute(call)
        lookup = _Lookup(self)
        starts = resolve_start(call.starting_offsets, call.split_ids, lookup)
        stopping = call.stopping_offsets
        stops = resolve_stop(stopping, call.split_ids, lookup) if stopping is not None else {}
        return [
            KafkaPartitionSplit(
                cluster=str(s[0]),
                topic=str(s[1]),
                partition=int(s[2]),
                offset=start,
                stopping_offset=stops.get(s),
                topic_id=self.topic_ids.get((str(s[0]), str(s[1]))),
            )
            for s, start in starts.items()
        ]


@dataclass
class _Lookup:
    broker: ResolvingBroker

    def ends(self, split_ids: Collection[SplitId], anchor: Anchor) -> dict[SplitId, int]:
        return self.broker.ends_of(split_ids, anchor)

    def at_times(self, millis: Mapping[SplitId, int]) -> dict[SplitId, int]:
        del millis
        return {}

    def committed(self, group: str, split_ids: Collection[SplitId]) -> dict[SplitId, int]:
        del group, split_ids
        return {}
