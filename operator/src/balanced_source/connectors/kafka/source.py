"""The Kafka source: partitions of topics on one or many clusters. Scopes of discovery are the clusters."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from balanced_source.api import (
    Boundedness,
    Json,
    Position,
    SplitId,
    SupportsSplitReassignmentOnRecovery,
)
from balanced_source.assigners import RoundRobinAssigner, SplitAssigner
from balanced_source.connectors.discovery import Discover, DiscoveringSource, Initialize
from balanced_source.connectors.kafka.offsets import EARLIEST, OffsetsInitializer
from balanced_source.connectors.kafka.split import KafkaPartitionSplit, split_of
from balanced_source.connectors.kafka.subscriber import KafkaSubscriber


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaCluster:
    """How to reach a cluster; without secrets.

    Attributes:
        name: first part of its split ids; never reused for another cluster.
        bootstrap_servers: ``host:port[,host:port…]``.
        properties: librdkafka properties, checked against the reserved ones.
        secrets: names of Secrets (or folders of files) that hold further properties; later ones win.
    """

    name: str
    bootstrap_servers: str
    properties: Mapping[str, str] = field(default_factory=dict)
    secrets: tuple[str, ...] = ()

    def to_json(self) -> Json:
        """For readers: how to connect."""
        return {
            "bootstrapServers": self.bootstrap_servers,
            "properties": dict(self.properties),
            "secrets": list(self.secrets),
        }

    @classmethod
    def from_json(cls, name: str, data: Mapping[str, Any]) -> "KafkaCluster":
        """Inverse of `to_json`."""
        return cls(
            name=name,
            bootstrap_servers=data["bootstrapServers"],
            properties=dict(data["properties"]),
            secrets=tuple(data["secrets"]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoverKafka(Discover):
    """List the subscribed partitions of a cluster; the result is a `Discovered`."""

    scope: str
    round: int
    cluster: KafkaCluster
    subscriber: KafkaSubscriber


@dataclass(frozen=True, slots=True, kw_only=True)
class InitializeKafka(Initialize):
    """Resolve start offsets of partitions of a cluster; the result is a sequence of `KafkaPartitionSplit`."""

    scope: str
    split_ids: tuple[SplitId, ...]
    cluster: KafkaCluster
    starting_offsets: OffsetsInitializer


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaSource(DiscoveringSource[KafkaPartitionSplit], SupportsSplitReassignmentOnRecovery):
    """A value: equal settings make equal sources.

    Attributes:
        clusters: names are unique.
        subscriber: the same choice on every cluster.
        starting_offsets: for the partitions of a cluster's first discovery; later ones start at the earliest offset.
        assigner: owner policy.
        discovery_interval: seconds; None looks once, and then no reader ever gets a further split.
        retention: seconds for which positions of removed partitions are kept.
    """

    clusters: tuple[KafkaCluster, ...]
    subscriber: KafkaSubscriber
    starting_offsets: OffsetsInitializer = EARLIEST
    assigner: SplitAssigner = field(default_factory=RoundRobinAssigner)
    discovery_interval: float | None = 300.0
    retention: float = 0.0

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.CONTINUOUS_UNBOUNDED

    def scopes(self) -> tuple[str, ...]:
        return tuple(cluster.name for cluster in self.clusters)

    def scope_of(self, split_id: SplitId) -> str:
        return str(split_id[0])

    def subscribes(self, split_id: SplitId) -> bool:
        cluster, topic, partition = split_id
        return cluster in self.scopes() and self.subscriber.subscribes(str(topic), int(partition))

    def discover(self, scope: str, round_number: int) -> DiscoverKafka:
        return DiscoverKafka(scope=scope, round=round_number, cluster=self._cluster(scope), subscriber=self.subscriber)

    def initialize(self, scope: str, split_ids: Collection[SplitId], *, is_first: bool) -> InitializeKafka:
        return InitializeKafka(
            scope=scope,
            split_ids=tuple(split_ids),
            cluster=self._cluster(scope),
            starting_offsets=self.starting_offsets if is_first else EARLIEST,
        )

    def create_split(self, split_id: SplitId, position: Position, attributes: Mapping[str, Any]) -> KafkaPartitionSplit:
        return split_of(split_id, position, attributes)

    def reader_settings(self) -> Mapping[str, Any]:
        return {"kafka": {"clusters": {cluster.name: cluster.to_json() for cluster in self.clusters}}}

    def _cluster(self, name: str) -> KafkaCluster:
        return next(cluster for cluster in self.clusters if cluster.name == name)
