"""What one Kafka cluster can be asked, with errors that say what to do. Blocking."""

import logging
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from confluent_kafka import (
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AclOperation, AdminClient, OffsetSpec

from balanced_source.api import SplitId
from balanced_source.connectors.kafka import Anchor, KafkaSplitId
from balanced_source.connectors.kafka.reasons import KafkaReason
from balanced_source.errors import DiscoveryError, RefusedDiscoveryError, TransientDiscoveryError
from balanced_source.host.alignment import RecordTime
from balanced_source.names import shown
from balanced_source.reasons import Reason
from balanced_source_adapters.kafka.client_statistics import INTERVAL_MS, BrokerStatistics, parse
from balanced_source_adapters.kafka.config import without_secrets
from balanced_source_adapters.kafka.offsets import (
    NOT_THERE,
    ListedOffsets,
    OffsetRequests,
    Wanted,
    partition_of,
)
from balanced_source_adapters.kafka.topic_ids import take_topic_id

REQUEST_TIMEOUT: Final = 10.0
"""Seconds for one request, all of librdkafka's retries included."""

DESCRIBE_TIMEOUT: Final = 3.0
"""Seconds for a description of topics by the broker that was named as controller, before another
one is looked for."""

_REFUSALS: Final[Mapping[int, tuple[str, str]]] = {
    KafkaError._AUTHENTICATION: (Reason.AUTHENTICATION_FAILED, "check the credentials"),
    KafkaError.SASL_AUTHENTICATION_FAILED: (Reason.AUTHENTICATION_FAILED, "check the credentials"),
    KafkaError._SSL: (Reason.TLS_FAILED, "check security.protocol and the certificates"),
    KafkaError._INVALID_ARG: (Reason.INVALID_PROPERTIES, "check properties of the cluster"),
    KafkaError.TOPIC_AUTHORIZATION_FAILED: (
        Reason.NOT_AUTHORIZED,
        "the user needs Describe and Read on the topics",
    ),
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: (
        Reason.NOT_AUTHORIZED,
        "the user needs Describe on the cluster",
    ),
    KafkaError.GROUP_AUTHORIZATION_FAILED: (
        Reason.NOT_AUTHORIZED,
        "the user needs Describe and Read on the group",
    ),
}
"""Errors that someone has to mend: code → reason of the condition, and what to do."""


_SHOWN: Final = 5
"""Topics that a message names."""

_UNREACHABLE: Final = frozenset(
    {KafkaError._TRANSPORT, KafkaError._TIMED_OUT, KafkaError._ALL_BROKERS_DOWN}
)
"""Errors of a cluster that says nothing at all."""

_RECENT: Final = 30.0
"""Seconds for which the complaint of a connection explains a request that failed."""

_SILENT: Final = logging.getLogger("balanced_source.librdkafka")
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False
"""librdkafka repeats itself every second while a broker is down; what it says is in our own errors.
"""


class _Notes:
    """What a client has told in passing.

    It knows no client, so that no circle keeps an unused one alive.
    """

    def __init__(self) -> None:
        self.complaint: tuple[KafkaError, float] | None = None
        self.statistics: BrokerStatistics | None = None

    def on_error(self, error: KafkaError) -> None:
        """Take note of what a connection complains about."""
        if error.code() != KafkaError._ALL_BROKERS_DOWN:
            self.complaint = (error, time.monotonic())

    def on_statistics(self, text: str) -> None:
        """Take over newer statistics."""
        self.statistics = parse(text)


@dataclass(frozen=True, slots=True)
class Topic:
    """What a cluster says of a topic.

    Its partitions, and the id that tells it from a former topic of that name.
    """

    partitions: frozenset[int]
    topic_id: str


class TopicsRefusedError(RefusedDiscoveryError):
    """The cluster refuses some topics and describes the others.

    Attributes:
        found: the topics that were described.
        refused: names of the topics that were refused.
    """

    def __init__(
        self, message: str, *, scope: str, found: Mapping[str, Topic], refused: frozenset[str]
    ) -> None:
        super().__init__(message, scope=scope, reason=Reason.NOT_AUTHORIZED)
        self.found = found
        self.refused = refused


class Tail(NamedTuple):
    """States where a partition ends, and the leader epoch of the broker that says so.

    None: an old broker. One is made for each partition at each look.
    """

    offset: int
    leader_epoch: int | None


class ClusterClient:
    """The admin client of one cluster, with what it said about itself.

    An `OffsetLookup`; thread-safe.

    Every method raises DiscoveryError: the cluster did not answer, or refused.

    The client queues statistics, errors and log lines until they are fetched: `tend` has to be
    called now and then.

    Args:
        cluster: name, for errors.
        config: of librdkafka.
        is_read_committed: whether records of open transactions are not there yet.
        has_statistics: whether someone looks at `statistics`. If not, none are made: 60 MB a day.
    """

    def __init__(
        self,
        cluster: str,
        config: Mapping[str, Any],
        *,
        is_read_committed: bool = True,
        has_statistics: bool = False,
    ) -> None:
        self._cluster = cluster
        self._config = config
        self._isolation = (
            IsolationLevel.READ_COMMITTED if is_read_committed else IsolationLevel.READ_UNCOMMITTED
        )
        self._notes = _Notes()
        self._admin: Any = None
        try:
            settings: dict[str, Any] = {
                "statistics.interval.ms": INTERVAL_MS,
                **config,
                **({} if has_statistics else {"statistics.interval.ms": 0}),
                "error_cb": self._notes.on_error,
                "stats_cb": self._notes.on_statistics,
                "logger": _SILENT,
            }
            self._admin = AdminClient(settings)
        except KafkaException as error:
            raise self._translated(error) from None  # it quotes values
        self._offsets = OffsetRequests(self._admin, self._isolation, timeout=REQUEST_TIMEOUT)
        self._uncommitted = OffsetRequests(
            self._admin, IsolationLevel.READ_UNCOMMITTED, timeout=REQUEST_TIMEOUT
        )

    @property
    def statistics(self) -> BrokerStatistics | None:
        """Newest that the client told; None before the first."""
        self.tend()
        return self._notes.statistics

    def tend(self) -> None:
        """Fetch what the client has queued; else it grows without end."""
        self._admin.poll(0)

    # --- topics -----------------------------------------------------------------------------------

    def topic_names(self) -> list[str]:
        """Every topic that can be seen."""
        try:
            listed = self._admin.list_topics(timeout=REQUEST_TIMEOUT).topics
        except KafkaException as error:
            raise self._translated(error) from error
        return [name for name, topic in listed.items() if topic.error is None]

    def topics(self, names: Collection[str], *, must_be_readable: bool = False) -> dict[str, Topic]:
        """The topics that exist.

        They are described by the controller alone, and for some seconds brokers name one that has
        just died. The client would believe them forever: it has to ask who the controller is.

        Args:
            names: of topics.
            must_be_readable: whether topics count as refused that the user may describe and not
                read.

        Raises:
            TopicsRefusedError: some topics are refused; it has the others.
        """
        if not names:
            return {}
        try:
            return self._described(names, DESCRIBE_TIMEOUT, must_be_readable=must_be_readable)
        except TransientDiscoveryError:
            # Brokers name a controller for seconds after its death, and the client believes them.
            self._refresh(None)
            return self._described(names, REQUEST_TIMEOUT, must_be_readable=must_be_readable)

    def _described(
        self, names: Collection[str], timeout: float, *, must_be_readable: bool
    ) -> dict[str, Topic]:
        found: dict[str, Topic] = {}
        refused: dict[str, KafkaError] = {}
        futures = self._admin.describe_topics(
            TopicCollection(list(names)),
            request_timeout=timeout,
            include_authorized_operations=must_be_readable,
        )
        for name, future in futures.items():
            try:
                described = future.result()
                if must_be_readable and not _is_readable(described):
                    refused[name] = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)
                else:
                    numbers = frozenset(p.id for p in described.partitions)
                    found[name] = Topic(self._checked(name, numbers), take_topic_id(described))
            except KafkaException as error:
                code = error.args[0].code()
                if code == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                    refused[name] = error.args[0]
                elif code not in NOT_THERE:
                    raise self._translated(error) from error
        if refused:
            message = self._refused_topics(refused, next(iter(refused.values())))
            raise TopicsRefusedError(
                message, scope=self._cluster, found=found, refused=frozenset(refused)
            )
        return found

    def _checked(self, topic: str, numbers: frozenset[int]) -> frozenset[int]:
        """The client library cannot handle negative numbers: it uses them for "no partition"."""
        if numbers and min(numbers) < 0:
            raise TransientDiscoveryError(
                f"cluster {self._cluster} lists partition {min(numbers)} of topic {shown(topic)},"
                " which cannot exist. Check that bootstrapServers name Kafka brokers of a"
                " supported version; trying again",
                scope=self._cluster,
            )
        return numbers

    def topic_ids(self, names: Collection[str]) -> dict[str, str]:
        """Ids of the topics that exist, as they are now; errors as of `topics`."""
        return {name: topic.topic_id for name, topic in self.topics(names).items()}

    # --- offsets ----------------------------------------------------------------------------------

    def ends(self, split_ids: Collection[SplitId], anchor: Anchor) -> dict[SplitId, int]:
        """See `OffsetLookup`.

        Raises an error with the other answers if a partition exists and does not answer.
        """
        spec = OffsetSpec.earliest() if anchor is Anchor.EARLIEST else OffsetSpec.latest()
        return self._answers(dict.fromkeys(split_ids, spec))

    def high_watermarks(self, split_ids: Collection[SplitId]) -> dict[SplitId, int]:
        """Return where each partition ends with the records of open transactions.

        Errors as of `ends`.
        """
        wanted = dict.fromkeys(split_ids, OffsetSpec.latest())
        return self._offsets_in(self._uncommitted.ask(wanted))

    def tails(self, split_ids: Collection[SplitId]) -> dict[SplitId, Tail]:
        """Return where each partition ends and the leader epoch in which it does.

        Errors as of `ends`.
        """
        listed = self._listed(dict.fromkeys(split_ids, OffsetSpec.latest()))
        tails = {
            s: Tail(offset=a.offset, leader_epoch=_epoch(a.leader_epoch))
            for s, a in listed.answers.items()
        }
        if listed.errors:
            error = self._unanswered(listed)
            error.answers = tails if error.answers else {}
            raise error
        return tails

    def at_times(self, millis: Mapping[SplitId, int]) -> dict[SplitId, int]:
        """See `OffsetLookup`.

        A partition that does not answer is an error: no record would be an answer.
        """
        answers = self._answers({s: OffsetSpec.for_timestamp(ms) for s, ms in millis.items()})
        if silent := sorted(millis.keys() - answers.keys()):
            raise unanswered(self._cluster, silent)
        return {s: offset for s, offset in answers.items() if offset >= 0}

    def records_from(self, millis: Mapping[SplitId, int]) -> dict[SplitId, RecordTime | None]:
        """The first record of each partition at or after a time.

        None if there is none, left out if unknown.
        """
        listed = self._listed({s: OffsetSpec.for_timestamp(ms) for s, ms in millis.items()})
        if listed.errors and not listed.answers:
            raise self._unanswered(listed)
        answers = listed.answers.items()
        return {
            s: RecordTime(offset=a.offset, time=a.timestamp) if a.offset >= 0 else None
            for s, a in answers
        }

    def committed(self, group: str, split_ids: Collection[SplitId]) -> dict[SplitId, int]:
        """See `OffsetLookup`."""
        wanted = {(str(s[1]), int(s[2])): s for s in split_ids}
        request = [ConsumerGroupTopicPartitions(group, [partition_of(s) for s in split_ids])]
        try:
            futures = self._admin.list_consumer_group_offsets(
                request, request_timeout=REQUEST_TIMEOUT
            )
            answer = futures[group].result()
        except KafkaException as error:
            raise self._translated(error) from error
        if failed := [
            tp.error
            for tp in answer.topic_partitions
            if tp.error and tp.error.code() not in NOT_THERE
        ]:
            raise self._translated(KafkaException(failed[0]))
        listed = {
            (tp.topic, tp.partition): tp.offset
            for tp in answer.topic_partitions
            if tp.error is None
        }
        return {
            split_id: listed[key] for key, split_id in wanted.items() if listed.get(key, -1) >= 0
        }

    def commit(self, group: str, offsets: Mapping[SplitId, int]) -> None:
        """Set the offsets of a group that has no members."""
        ordered = ((KafkaSplitId.of(s), offset) for s, offset in sorted(offsets.items()))
        listed = [TopicPartition(s.topic, s.partition, offset) for s, offset in ordered]
        request = [ConsumerGroupTopicPartitions(group, listed)]
        try:
            futures = self._admin.alter_consumer_group_offsets(
                request, request_timeout=REQUEST_TIMEOUT
            )
            answer = futures[group].result()
        except KafkaException as error:
            raise self._translated(error) from error
        for partition in answer.topic_partitions:
            if partition.error is not None and partition.error.code() not in NOT_THERE:
                raise self._translated(KafkaException(partition.error))

    def _answers(self, wanted: Wanted) -> dict[SplitId, int]:
        return self._offsets_in(self._listed(wanted))

    def _offsets_in(self, listed: ListedOffsets) -> dict[SplitId, int]:
        if listed.errors:
            raise self._unanswered(listed)
        return {s: answer.offset for s, answer in listed.answers.items()}

    def _listed(self, wanted: Wanted) -> ListedOffsets:
        listed = self._offsets.ask(wanted)
        if listed.answers and not listed.errors:
            # Everything answers: what a connection has complained about is over.
            self._notes.complaint = None
        return listed

    def _refresh(self, topic: str | None) -> None:
        try:
            self._admin.list_topics(topic, timeout=REQUEST_TIMEOUT)
        except KafkaException as error:
            raise self._translated(error) from error

    # --- errors -----------------------------------------------------------------------------------

    def _unanswered(self, listed: ListedOffsets) -> DiscoveryError:
        """The error for partitions without an answer; it has the answers of the others."""
        error = next(
            (e for e in listed.errors.values() if e.code() in _REFUSALS),
            next(iter(listed.errors.values())),
        )
        answers = {s: answer.offset for s, answer in listed.answers.items()}
        if error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            refused = {
                KafkaSplitId.of(s).topic
                for s, e in listed.errors.items()
                if e.code() == error.code()
            }
            message = self._refused_topics(refused, error)
            return RefusedDiscoveryError(
                message, scope=self._cluster, reason=Reason.NOT_AUTHORIZED, answers=answers
            )
        if not answers and error.code() in _UNREACHABLE:
            return self._translated(KafkaException(error))
        return self._refusal(error, answers) or unanswered(
            self._cluster, sorted(listed.errors), why=self._error_text(error), answers=answers
        )

    def _translated(self, raised: KafkaException) -> DiscoveryError:
        """The error that says most: a request only times out, while the connection knows why."""
        error: KafkaError = raised.args[0]
        if self._admin is not None:
            self._admin.poll(0)  # delivers what the connections complained about
        complaint, at = self._notes.complaint or (None, 0.0)
        # An old complaint would explain a new failure wrongly.
        if complaint is not None and time.monotonic() - at > _RECENT:
            complaint = None
        for candidate in (error, complaint):
            # A request only times out; what its connection complains about, someone may mend.
            if candidate is not None and (refusal := self._refusal(candidate)) is not None:
                return refusal
        why = self._error_text(complaint or error)
        return TransientDiscoveryError(
            f"cluster {self._cluster} does not answer ({why}): check bootstrapServers and the"
            " network; trying again",
            scope=self._cluster,
            reason=Reason.CLUSTER_UNREACHABLE,
        )

    def _refusal(
        self, error: KafkaError, answers: Mapping[SplitId, int] = MappingProxyType({})
    ) -> RefusedDiscoveryError | None:
        if (refusal := _REFUSALS.get(error.code())) is None:
            return None
        reason, advice = refusal
        message = f"cluster {self._cluster}: {self._error_text(error)}: {advice}"
        return RefusedDiscoveryError(message, scope=self._cluster, reason=reason, answers=answers)

    def _refused_topics(self, topics: Collection[str], error: KafkaError) -> str:
        names = sorted(topics)
        shown = ", ".join(names[:_SHOWN]) + (
            f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        )
        return (
            f"cluster {self._cluster} refuses topic {shown} ({self._error_text(error)}): grant the"
            " user Describe and Read on it, or take it out of the subscription. Other topics are"
            " read meanwhile"
        )

    def _error_text(self, error: KafkaError) -> str:
        return without_secrets(error.str(), self._config)


def _is_readable(described: Any) -> bool:
    """Whether the user may read a topic.

    Brokers that do not tell leave it to the tasks to find out.
    """
    allowed = getattr(described, "authorized_operations", None)
    return not allowed or AclOperation.READ in allowed or AclOperation.ALL in allowed


def unanswered(
    cluster: str,
    split_ids: Sequence[SplitId],
    *,
    why: str = "",
    answers: Mapping[SplitId, int] = MappingProxyType({}),
) -> TransientDiscoveryError:
    """Return the error for partitions that exist and do not say where they begin or end."""
    first = "/".join(map(str, split_ids[0][1:]))
    because = f" ({why})" if why else ""
    return TransientDiscoveryError(
        f"cluster {cluster}: {len(split_ids)} partitions, e.g. {first}, have no leader that"
        f" answers{because}: check that all brokers are up; trying again",
        scope=cluster,
        reason=KafkaReason.NO_LEADER,
        answers=answers,
    )


def _epoch(answer: int | None) -> int | None:
    return answer if answer is not None and answer >= 0 else None
