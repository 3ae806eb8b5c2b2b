"""Answers the Kafka connector's calls with a real client. Blocking: the runtime calls it in a worker thread."""

import logging
import threading
from collections.abc import Iterable, Mapping
from typing import Any, Final

from confluent_kafka import (
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, OffsetSpec

from balanced_source.api import SplitId
from balanced_source.connectors.discovery import Discovered
from balanced_source.connectors.kafka import (
    Anchor,
    DiscoverKafka,
    InitializeKafka,
    KafkaCluster,
    KafkaPartitionSplit,
)
from balanced_source.errors import DiscoveryError, RefusedDiscoveryError, TransientDiscoveryError
from balanced_source_adapters.kafka_config import NoSecrets, SecretReader, client_config

REQUEST_TIMEOUT: Final = 10.0
"""Seconds for one request, all of librdkafka's retries included."""

_REFUSALS: Final[Mapping[int, tuple[str, str]]] = {
    KafkaError._AUTHENTICATION: ("AuthenticationFailed", "check the credentials in propertiesFrom"),
    KafkaError.SASL_AUTHENTICATION_FAILED: ("AuthenticationFailed", "check the credentials in propertiesFrom"),
    KafkaError._SSL: ("TlsFailed", "check security.protocol and the certificates"),
    KafkaError._INVALID_ARG: ("InvalidProperties", "check properties of the cluster"),
    KafkaError.TOPIC_AUTHORIZATION_FAILED: ("NotAuthorized", "the user needs Describe and Read on the topics"),
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: ("NotAuthorized", "the user needs Describe on the cluster"),
}
"""Errors that somebody has to mend: code → reason of the condition, and what to do."""


_NOT_THERE: Final = frozenset(
    {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_PARTITION, KafkaError._UNKNOWN_TOPIC}
)
"""A partition that does not exist, according to the broker or to the client's own picture."""

_SILENT: Final = logging.getLogger("balanced_source.librdkafka")
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False
"""librdkafka repeats itself every second while a broker is down; what it says is in our own errors."""


class KafkaAdmin:
    """One admin client per cluster, made anew when the way to reach the cluster changes. Thread-safe."""

    def __init__(self, secrets: SecretReader | None = None, *, client_id: str = "balanced-source") -> None:
        self._secrets = secrets or NoSecrets()
        self._client_id = client_id
        self._clients: dict[str, tuple[dict[str, Any], _Client]] = {}
        self._lock = threading.Lock()

    def discover(self, call: DiscoverKafka) -> Discovered:
        """Execute a discovery.

        Raises:
            DiscoveryError: the cluster did not answer, or refused.
        """
        client = self._client(call.cluster)
        topics = call.subscriber.topics
        partitions = client.all_topics() if topics is None else client.topics(topics)
        return call.subscriber.select(call.scope, partitions)

    def initialize(self, call: InitializeKafka) -> tuple[KafkaPartitionSplit, ...]:
        """Resolve start offsets.

        Raises:
            DiscoveryError: the cluster did not answer, or refused.
        """
        offsets = self._client(call.cluster).offsets(call.split_ids, call.starting_offsets.anchor)
        return tuple(
            KafkaPartitionSplit(cluster=str(s[0]), topic=str(s[1]), partition=int(s[2]), offset=offset)
            for s, offset in offsets.items()
        )

    def ends(
        self, cluster: KafkaCluster, split_ids: Iterable[SplitId], *, is_read_committed: bool
    ) -> dict[SplitId, int]:
        """End of each partition: where reading everything that is there now would stop.

        Raises:
            DiscoveryError: the cluster did not answer, or refused.
        """
        return self._client(cluster).offsets(split_ids, Anchor.LATEST, is_read_committed=is_read_committed)

    def begins(self, cluster: KafkaCluster, split_ids: Iterable[SplitId]) -> dict[SplitId, int]:
        """First offset of each partition that still exists.

        Raises:
            DiscoveryError: the cluster did not answer, or refused.
        """
        return self._client(cluster).offsets(split_ids, Anchor.EARLIEST)

    def _client(self, cluster: KafkaCluster) -> "_Client":
        config = self._config(cluster)
        with self._lock:
            known = self._clients.get(cluster.name)
            if known is None or known[0] != config:
                known = (config, _Client(cluster.name, config))
                self._clients[cluster.name] = known
            return known[1]

    def _config(self, cluster: KafkaCluster) -> dict[str, Any]:
        try:
            return client_config(cluster, self._secrets, client_id=f"{self._client_id}-admin")
        except LookupError as error:
            raise RefusedDiscoveryError(str(error), scope=cluster.name, reason="SecretNotFound") from error


class _Client:
    """The admin client of one cluster, with what it said about itself."""

    def __init__(self, cluster: str, config: Mapping[str, Any]) -> None:
        self._cluster = cluster
        self._last_error: KafkaError | None = None
        self._admin: Any = None
        try:
            settings: dict[str, Any] = {**config, "error_cb": self._on_error, "logger": _SILENT}
            self._admin = AdminClient(settings)
        except KafkaException as error:
            raise self._translated(error) from error

    def all_topics(self) -> dict[str, frozenset[int]]:
        """Partitions of every topic."""
        try:
            listed = self._admin.list_topics(timeout=REQUEST_TIMEOUT).topics
        except KafkaException as error:
            raise self._translated(error) from error
        return {name: frozenset(topic.partitions) for name, topic in listed.items() if topic.error is None}

    def topics(self, names: Iterable[str]) -> dict[str, frozenset[int]]:
        """Partitions of the topics that exist."""
        found: dict[str, frozenset[int]] = {}
        futures = self._admin.describe_topics(TopicCollection(list(names)), request_timeout=REQUEST_TIMEOUT)
        for name, future in futures.items():
            try:
                found[name] = frozenset(p.id for p in future.result().partitions)
            except KafkaException as error:
                if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                    raise self._translated(error) from error
        return found

    def offsets(
        self, split_ids: Iterable[SplitId], anchor: Anchor, *, is_read_committed: bool = False
    ) -> dict[SplitId, int]:
        """Offsets of one end of the partitions; those that do not exist are left out."""
        wanted = {TopicPartition(str(s[1]), int(s[2])): s for s in split_ids}
        found = self._listed_offsets(wanted, anchor, is_read_committed=is_read_committed)
        if missing := [p for p, s in wanted.items() if s not in found]:
            # The client answers from its own picture of the topics, which knows nothing of partitions that were added
            # a moment ago: renew it, then ask again.
            for topic in sorted({partition.topic for partition in missing}):
                self._refresh(topic)
            found |= self._listed_offsets({p: wanted[p] for p in missing}, anchor, is_read_committed=is_read_committed)
        return found

    def _refresh(self, topic: str) -> None:
        try:
            self._admin.list_topics(topic, timeout=REQUEST_TIMEOUT)
        except KafkaException as error:
            raise self._translated(error) from error

    def _listed_offsets(
        self, wanted: Mapping[TopicPartition, SplitId], anchor: Anchor, *, is_read_committed: bool
    ) -> dict[SplitId, int]:
        if not wanted:
            return {}
        spec = OffsetSpec.earliest() if anchor is Anchor.EARLIEST else OffsetSpec.latest()
        isolation = IsolationLevel.READ_COMMITTED if is_read_committed else IsolationLevel.READ_UNCOMMITTED
        futures = self._admin.list_offsets(
            dict.fromkeys(wanted, spec), isolation_level=isolation, request_timeout=REQUEST_TIMEOUT
        )
        offsets: dict[SplitId, int] = {}
        for partition, future in futures.items():
            try:
                offsets[wanted[partition]] = future.result().offset
            except KafkaException as error:
                if error.args[0].code() not in _NOT_THERE:
                    raise self._translated(error) from error
        return offsets

    def _on_error(self, error: KafkaError) -> None:
        if error.code() != KafkaError._ALL_BROKERS_DOWN:
            self._last_error = error

    def _translated(self, raised: KafkaException) -> DiscoveryError:
        """The error that says most: a request only times out, while the connection knows why."""
        error: KafkaError = raised.args[0]
        if self._admin is not None:
            self._admin.poll(0)  # delivers what the connections complained about
        for candidate in (error, self._last_error):
            if candidate is not None and (refusal := _REFUSALS.get(candidate.code())) is not None:
                reason, advice = refusal
                return RefusedDiscoveryError(
                    f"cluster {self._cluster}: {candidate.str()}: {advice}", scope=self._cluster, reason=reason
                )
        why = (self._last_error or error).str()
        return TransientDiscoveryError(
            f"cluster {self._cluster} does not answer ({why}): check bootstrapServers and the network; trying again",
            scope=self._cluster,
            reason="ClusterUnreachable",
        )
