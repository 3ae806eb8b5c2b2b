"""Answers the Kafka connector's calls with a real client.

Blocking: the runtime calls it in a worker thread.
"""

import threading
import time
import weakref
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import replace
from functools import cache
from types import MappingProxyType
from typing import Any, Final

from confluent_kafka import KafkaException

from balanced_source.api import SecretReader, SplitId
from balanced_source.connectors.discovery import Discovered
from balanced_source.connectors.kafka import (
    Anchor,
    DiscoverKafka,
    InitializeKafka,
    KafkaCluster,
    KafkaPartitionSplit,
    KafkaSplitId,
    cut_at_start,
    resolve_start,
    resolve_stop,
    void_commits,
)
from balanced_source.connectors.kafka.cluster import is_committed
from balanced_source.connectors.kafka.offsets import identity_of
from balanced_source.errors import DiscoveryError, InvalidSpecError, RefusedDiscoveryError
from balanced_source.host.alignment import RecordTime
from balanced_source.host.ends import Mark, SplitEnd, are_continued, doubtful
from balanced_source.host.log_check import Found
from balanced_source.reasons import Reason
from balanced_source_adapters.kafka.client import ClusterClient, Tail
from balanced_source_adapters.kafka.client_errors import unanswered
from balanced_source_adapters.kafka.client_statistics import BrokerStatistics
from balanced_source_adapters.kafka.config import NoSecrets, client_config
from balanced_source_adapters.kafka.id_memory import IdMemory
from balanced_source_adapters.kafka.log_check import check_logs
from balanced_source_adapters.kafka.topics import Topic, TopicsRefusedError
from balanced_source_adapters.keeper import Keeper
from balanced_source_adapters.lazy_log import get_logger

log = get_logger(__name__)

IDLE: Final = 3600.0
"""Seconds after which a client that no one used is given up."""

_keeper: Final = Keeper()


class SharedClients:
    """Clients that several users share if they reach a cluster in the very same way. Thread-safe.

    Same means the same name of the cluster, and the same properties with the same values, those
    from Secrets included. Who has other credentials never gets the client, and neither does a user
    whose Secret has changed. A client is closed when its last user has let go of it.
    """

    def __init__(self) -> None:
        self._clients: weakref.WeakValueDictionary[Hashable, ClusterClient] = (
            weakref.WeakValueDictionary()
        )
        self._lock = threading.Lock()

    def get(
        self, cluster: KafkaCluster, config: Mapping[str, Any], *, has_statistics: bool
    ) -> ClusterClient:
        """Return the client for these properties; it is made if no one has one."""
        # Of all properties, as readers have them: a Secret or an environment variable may say it.
        is_read_committed = is_committed(config)
        key = (
            cluster.name,
            cluster.is_named,  # its errors have it in words
            is_read_committed,
            has_statistics,
            # With the values of Secrets: no one gets a client that has someone else's credentials.
            tuple(sorted((k, repr(v)) for k, v in config.items())),
        )
        with self._lock:
            client = self._clients.get(key)
            if client is None:
                client = self._clients[key] = ClusterClient(
                    cluster.name,
                    config,
                    title=cluster.title,
                    is_read_committed=is_read_committed,
                    has_statistics=has_statistics,
                )
            return client


@cache
def clients_of_the_process() -> SharedClients:
    """Return those that all who ask in this process share.

    They are all sources of an operator; in a planning process, who assigns and who plans.
    """
    return SharedClients()


class KafkaAdmin:
    """One admin client per cluster, rebuilt when the way to reach the cluster changes.

    Thread-safe.

    Args:
        secrets: resolves Secrets that clusters name.
        client_id: what brokers see.
        has_statistics: whether someone looks at `statistics`.
        idle: see `IDLE`.
        keeper: fetches what clients have queued while no one calls.
        clients: where clients come from; those of their own if None.
    """

    def __init__(
        self,
        secrets: SecretReader | None = None,
        *,
        client_id: str = "balanced-source",
        has_statistics: bool = False,
        idle: float = IDLE,
        keeper: Keeper = _keeper,
        clients: SharedClients | None = None,
    ) -> None:
        self._shared = clients or SharedClients()
        self._secrets = secrets or NoSecrets()
        self._client_id = client_id
        self._has_statistics = has_statistics
        self._idle = idle
        self._clients: dict[str, tuple[dict[str, Any], ClusterClient]] = {}
        self._used: dict[str, float] = {}
        self._memories: weakref.WeakKeyDictionary[ClusterClient, IdMemory] = (
            weakref.WeakKeyDictionary()
        )
        self._cuts: dict[str, dict[SplitId, tuple[tuple[Mark, int | None], Found]]] = {}
        self._lock = threading.Lock()
        keeper.add(self)

    def discover(self, call: DiscoverKafka) -> Discovered:
        """Execute a discovery.

        Raises:
            DiscoveryError: the cluster did not answer, or refused.
        """
        client = self._client(call.cluster)
        names = call.subscriber.topics
        if names is None:
            names = tuple(
                name for name in client.topic_names() if call.subscriber.subscribes(name, 0)
            )
        topics, refusal = _described(client, names, must_be_readable=True)
        if refusal is not None and not topics:
            raise refusal
        refused = refusal.refused if refusal is not None else frozenset[str]()
        selected = call.subscriber.select(
            call.scope,
            {n: t.partitions for n, t in topics.items()},
            refused,
            title=call.cluster.title,
        )
        return replace(
            selected,
            identities=_identities(selected.split_ids, topics),
            problem=_both(refusal, selected.problem),
            refused=frozenset((call.scope, name) for name in refused),
        )

    def initialize(self, call: InitializeKafka) -> tuple[KafkaPartitionSplit, ...]:
        """Resolve start and stop offsets.

        Raises:
            DiscoveryError: the cluster did not answer, or refused.
        """
        client = self._client(call.cluster)
        asked = [KafkaSplitId.of(s) for s in call.split_ids]
        topics = client.topics(sorted({s.topic for s in asked}))
        existing = [
            s for s in asked if s.topic in topics and s.partition in topics[s.topic].partitions
        ]
        ids = {name: topic.topic_id for name, topic in topics.items()}
        starts = resolve_start(
            call.starting_offsets, existing, client, ids, title=call.cluster.title
        )
        cut = cut_at_start(call.starting_offsets, starts, client)
        void = void_commits(call.starting_offsets, starts, client)
        stops = (
            resolve_stop(call.stopping_offsets, existing, client)
            if call.stopping_offsets
            else starts
        )
        if silent := sorted(set(existing) - (starts.keys() & stops.keys())):
            # Left out, they would count as found later, and start elsewhere.
            raise unanswered(call.scope, silent, title=call.cluster.title)
        return tuple(
            KafkaPartitionSplit(
                cluster=s.cluster,
                topic=s.topic,
                partition=s.partition,
                offset=start,
                stopping_offset=stops[s] if call.stopping_offsets is not None else None,
                topic_id=identity_of(topics[s.topic].topic_id),
                is_cut=s in cut,
                void_commit=void.get(s),
            )
            for s, start in (
                (KafkaSplitId.of(split_id), start) for split_id, start in starts.items()
            )
        )

    def ends(
        self,
        cluster: KafkaCluster,
        split_ids: Iterable[SplitId],
        marks: Mapping[SplitId, Mark] = MappingProxyType({}),
    ) -> dict[SplitId, SplitEnd]:
        """Return where each partition ends now, and the id of its topic.

        Partitions that do not exist are left out.

        Ids are asked for after the ends. So an end that comes with an id that a reader expects
        belongs to that topic: the reader learned the id before this call, and an id never returns.
        Only where all marks expect the ids that were true a moment ago, and nothing else speaks
        against it, these are used (see `IdMemory`).

        Args:
            cluster: to ask.
            split_ids: of partitions on it.
            marks: up to where partitions were read. Logs that may have been cut before are checked.

        Raises:
            DiscoveryError: the cluster did not answer, or refused; if only some partitions did not
                answer, the error has the ends of the others.
        """
        client, listed = self._client(cluster), list(split_ids)
        failure: DiscoveryError | None = None
        try:
            tails: Mapping[SplitId, Tail] = client.tails(listed)
        except DiscoveryError as error:
            if not error.answers:
                raise
            tails, failure = error.answers, error
        memory = self._memory(client)
        ends = _joined(tails, memory.recall())
        # A partition that is missing now, or has another leader, may be of a new topic.
        if len(ends) < len(listed) or not are_continued(marks, ends):
            topics, refusal = _described(client, {KafkaSplitId.of(s).topic for s in tails})
            ids, failure = {n: t.topic_id for n, t in topics.items()}, refusal or failure
            memory.keep(ids)
            ends = _joined(tails, ids)
        elif failure is None:
            return ends  # nearly always; what continues its mark needs no check
        answers = {**ends, **self._checked(cluster, ends, doubtful(marks, ends))}
        if failure is not None:
            failure.answers = answers
            raise failure
        return answers

    def _checked(
        self,
        cluster: KafkaCluster,
        ends: Mapping[SplitId, SplitEnd],
        doubtful: Mapping[SplitId, Mark],
    ) -> dict[SplitId, SplitEnd]:
        """The answers of partitions whose logs may have been cut, where that could be found out.

        A leader with an older epoch than a reader has seen is one of former times; what it says
        does not count.
        """
        # A former leader that has not noticed yet would say that a log was cut which was not.
        current = {s: mark for s, mark in doubtful.items() if not _is_former(mark, ends[s])}
        if not current:
            return {}
        asked = {s: (mark, ends[s].term) for s, mark in current.items()}
        # A cut stays one while the leader does: it waits for a user, perhaps for days.
        known = {
            s: found
            for s, (question, found) in self._cuts.get(cluster.name, {}).items()
            if asked.get(s) == question
        }
        found = known
        try:
            found |= self._found(cluster, {s: q for s, q in asked.items() if s not in known})
        except KafkaException as error:
            log.warning(
                "cannot check logs now; trying again",
                cluster=cluster.name,
                error=error.args[0].name(),
            )
        self._cuts[cluster.name] = {
            s: (asked[s], answer) for s, answer in found.items() if answer.cut is not None
        }
        return {
            s: replace(ends[s], checked=current[s], cut=cut, past=past)
            for s, (cut, past) in found.items()
        }

    def _found(
        self, cluster: KafkaCluster, asked: Mapping[SplitId, tuple[Mark, int | None]]
    ) -> dict[SplitId, Found]:
        return check_logs(self._config(cluster), asked) if asked else {}

    def ask_topic_ids(
        self, cluster: KafkaCluster, topics: Collection[str]
    ) -> Callable[[], Mapping[str, str]]:
        """Ask for the ids of topics.

        Returns:
            What waits for the answer: the ids of those topics that exist. It raises DiscoveryError
            if the cluster did not answer, or refused.

        Raises:
            DiscoveryError: no client can be made with the properties of the cluster.
        """
        return self._client(cluster).ask_topic_ids(topics)

    def begins(self, cluster: KafkaCluster, split_ids: Collection[SplitId]) -> dict[SplitId, int]:
        """First offset of each partition that still exists.

        Raises:
            DiscoveryError: the cluster did not answer, or refused.
        """
        return self._client(cluster).ends(split_ids, Anchor.EARLIEST)

    def high_watermarks(
        self, cluster: KafkaCluster, split_ids: Collection[SplitId]
    ) -> dict[SplitId, int]:
        """Where each partition ends with the records of open transactions.

        Raises:
            DiscoveryError: the cluster did not answer, or refused; if only some partitions did not
                answer, the error has the others.
        """
        return self._client(cluster).high_watermarks(split_ids)

    def records_from(
        self, cluster: KafkaCluster, millis: Mapping[SplitId, int]
    ) -> dict[SplitId, RecordTime | None]:
        """The first record of each partition at or after a time, in milliseconds.

        None if there is none.

        Raises:
            DiscoveryError: the cluster did not answer, or refused.
        """
        return self._client(cluster).records_from(millis)

    def commit(self, cluster: KafkaCluster, group: str, offsets: Mapping[SplitId, int]) -> None:
        """Set the offsets of a consumer group that has no members.

        Raises:
            DiscoveryError: the cluster did not answer, or refused.
        """
        self._client(cluster).commit(group, offsets)

    def statistics(self) -> Mapping[str, BrokerStatistics]:
        """Of the clients that have told any so far, by cluster."""
        with self._lock:
            clients = {name: client for name, (_, client) in self._clients.items()}
        by_cluster = {name: client.statistics for name, client in clients.items()}
        return {
            name: statistics for name, statistics in by_cluster.items() if statistics is not None
        }

    def tend(self) -> None:
        """Fetch what the clients have queued, and give up those that no one has used for long."""
        now = time.monotonic()
        with self._lock:
            idle = [name for name, at in self._used.items() if now - at > self._idle]
            # Of a cluster that was taken out: it would try to connect forever. Closed when the
            # lock is free.
            closed = [self._clients.pop(name) for name in idle if name in self._clients]
            for name in idle:
                del self._used[name]
                self._cuts.pop(name, None)
            clients = [client for _, client in self._clients.values()]
        for client in clients:
            client.tend()
        # Outside the lock: closing a client may take as long as a broker is silent.
        closed.clear()

    def close(self) -> None:
        """Give up all clients. The next call makes new ones."""
        with self._lock:
            closed = list(self._clients.values())
            self._clients.clear()
            self._used.clear()
        closed.clear()

    def _client(self, cluster: KafkaCluster) -> ClusterClient:
        config, name = self._config(cluster), cluster.name
        with self._lock:
            self._used[name] = time.monotonic()
            known = self._clients.get(name)
            # A Secret that was rotated gives another configuration, and so a new client.
            if known is None or known[0] != config:
                client = self._shared.get(cluster, config, has_statistics=self._has_statistics)
                known = self._clients[name] = (config, client)
            return known[1]

    def _memory(self, client: ClusterClient) -> IdMemory:
        # With its client: what another cluster of the same name has said is forgotten.
        with self._lock:
            return self._memories.setdefault(client, IdMemory())

    def _config(self, cluster: KafkaCluster) -> dict[str, Any]:
        try:
            return client_config(cluster, self._secrets, client_id=f"{self._client_id}-admin")
        except LookupError as error:
            raise RefusedDiscoveryError(
                str(error), scope=cluster.name, reason=Reason.SECRET_NOT_FOUND
            ) from error
        except InvalidSpecError as error:
            raise RefusedDiscoveryError(
                str(error), scope=cluster.name, reason=Reason.INVALID_PROPERTIES
            ) from error


def _identities(split_ids: Iterable[SplitId], topics: Mapping[str, Topic]) -> dict[SplitId, str]:
    """Return what tells partitions from those of former topics; nothing where no id is known."""
    known = {s: identity_of(topics[KafkaSplitId.of(s).topic].topic_id) for s in split_ids}
    return {s: identity for s, identity in known.items() if identity is not None}


def _joined(tails: Mapping[SplitId, Tail], ids: Mapping[str, str]) -> dict[SplitId, SplitEnd]:
    """Return the ends of those partitions whose topics have an id."""
    identities = {name: identity_of(topic_id) for name, topic_id in ids.items()}
    return {
        s: SplitEnd(end=tail.offset, identity=identities[str(s[1])], term=tail.leader_epoch)
        for s, tail in tails.items()
        if str(s[1]) in ids
    }


def _is_former(mark: Mark, answer: SplitEnd) -> bool:
    return mark.term is not None and answer.term is not None and answer.term < mark.term


def _described(
    client: ClusterClient, names: Collection[str], *, must_be_readable: bool = False
) -> tuple[Mapping[str, Topic], TopicsRefusedError | None]:
    """Return the topics that exist and may be described, and why others may not."""
    try:
        return client.topics(names, must_be_readable=must_be_readable), None
    except TopicsRefusedError as error:
        return error.found, error


def _both(refusal: DiscoveryError | None, problem: DiscoveryError | None) -> DiscoveryError | None:
    """Return one problem that says what both say, with the reason of the first."""
    if refusal is None or problem is None:
        return refusal or problem
    return RefusedDiscoveryError(
        f"{refusal}; {problem}", scope=refusal.scope, reason=refusal.reason
    )
