"""What one Kafka cluster can be asked, with errors that say what to do. Blocking."""

import logging
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, NamedTuple

from confluent_kafka import (
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaException,
    TopicPartition,
)

from balanced_source.api import SplitId
from balanced_source.connectors.kafka import Anchor, KafkaSplitId
from balanced_source.host.alignment import RecordTime
from balanced_source_adapters.kafka.client_errors import ClientErrors, ClientNotes, unanswered
from balanced_source_adapters.kafka.client_statistics import INTERVAL_MS, BrokerStatistics
from balanced_source_adapters.kafka.offsets import (
    NOT_THERE,
    ListedOffsets,
    OffsetRequests,
    Wanted,
    partition_of,
)
from balanced_source_adapters.kafka.offsets_admin import EARLIEST, LATEST, OffsetsAdmin
from balanced_source_adapters.kafka.topics import Topic, TopicRequests

REQUEST_TIMEOUT: Final = 10.0
"""Seconds for one request, all of librdkafka's retries included."""

_SILENT: Final = logging.getLogger("balanced_source.librdkafka")
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False
"""librdkafka repeats itself every second while a broker is down; what it says is in our own errors.
"""


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
        title: what messages call the cluster, if not by its name.
        is_read_committed: whether records of open transactions are not there yet.
        has_statistics: whether someone looks at `statistics`. If not, none are made: 60 MB a day.
    """

    def __init__(
        self,
        cluster: str,
        config: Mapping[str, Any],
        *,
        title: str = "",
        is_read_committed: bool = True,
        has_statistics: bool = False,
    ) -> None:
        self._cluster = cluster
        self._isolation = (
            IsolationLevel.READ_COMMITTED if is_read_committed else IsolationLevel.READ_UNCOMMITTED
        )
        self._notes = ClientNotes()
        self._errors = ClientErrors(cluster, config, self._notes, title=title)
        try:
            settings: dict[str, Any] = {
                "statistics.interval.ms": INTERVAL_MS,
                **config,
                **({} if has_statistics else {"statistics.interval.ms": 0}),
                "error_cb": self._notes.on_error,
                "stats_cb": self._notes.on_statistics,
                "logger": _SILENT,
            }
            self._admin = self._errors.admin = OffsetsAdmin(settings)
        except KafkaException as error:
            raise self._errors.translated(error) from None  # it quotes values
        self._offsets = OffsetRequests(self._admin, self._isolation, timeout=REQUEST_TIMEOUT)
        self._topics = TopicRequests(
            self._admin, cluster, timeout=REQUEST_TIMEOUT, errors=self._errors
        )
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
            raise self._errors.translated(error) from error
        return [name for name, topic in listed.items() if topic.error is None]

    def topics(self, names: Collection[str], *, must_be_readable: bool = False) -> dict[str, Topic]:
        """The topics that exist, see `TopicRequests.ask`."""
        return self._topics.ask(names, must_be_readable=must_be_readable)() if names else {}

    def ask_topic_ids(self, names: Collection[str]) -> Callable[[], Mapping[str, str]]:
        """Ask for the ids of topics.

        Returns:
            What waits for them: ids of the topics that exist, as they are after this call; it
            raises what `topics` does.
        """
        topics = self._topics.ask(names)
        return lambda: {name: topic.topic_id for name, topic in topics().items()}

    # --- offsets ----------------------------------------------------------------------------------

    def ends(self, split_ids: Collection[SplitId], anchor: Anchor) -> dict[SplitId, int]:
        """See `OffsetLookup`.

        Raises an error with the other answers if a partition exists and does not answer.
        """
        at = EARLIEST if anchor is Anchor.EARLIEST else LATEST
        return self._answers(dict.fromkeys(split_ids, at))

    def high_watermarks(self, split_ids: Collection[SplitId]) -> dict[SplitId, int]:
        """Return where each partition ends with the records of open transactions.

        Errors as of `ends`.
        """
        wanted = dict.fromkeys(split_ids, LATEST)
        return self._offsets_in(self._uncommitted.ask(wanted))

    def tails(self, split_ids: Collection[SplitId]) -> dict[SplitId, Tail]:
        """Return where each partition ends and the leader epoch in which it does.

        Errors as of `ends`.
        """
        listed = self._listed(dict.fromkeys(split_ids, LATEST))
        tails = {
            s: Tail(offset=a.offset, leader_epoch=_epoch(a.leader_epoch))
            for s, a in listed.answers.items()
        }
        if listed.errors:
            error = self._errors.unanswered(listed)
            error.answers = tails if error.answers else {}
            raise error
        return tails

    def at_times(self, millis: Mapping[SplitId, int]) -> dict[SplitId, int]:
        """See `OffsetLookup`.

        A partition that does not answer is an error: no record would be an answer.
        """
        answers = self._answers(_times(millis))
        if silent := sorted(millis.keys() - answers.keys()):
            raise unanswered(self._cluster, silent, title=self._errors.title)
        return {s: offset for s, offset in answers.items() if offset >= 0}

    def records_from(self, millis: Mapping[SplitId, int]) -> dict[SplitId, RecordTime | None]:
        """The first record of each partition at or after a time.

        None if there is none, left out if unknown.
        """
        listed = self._listed(_times(millis))
        if listed.errors and not listed.answers:
            raise self._errors.unanswered(listed)
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
            raise self._errors.translated(error) from error
        if failed := [
            tp.error
            for tp in answer.topic_partitions
            if tp.error and tp.error.code() not in NOT_THERE
        ]:
            raise self._errors.translated(KafkaException(failed[0]))
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
            raise self._errors.translated(error) from error
        for partition in answer.topic_partitions:
            if partition.error is not None and partition.error.code() not in NOT_THERE:
                raise self._errors.translated(KafkaException(partition.error))

    def _answers(self, wanted: Wanted) -> dict[SplitId, int]:
        return self._offsets_in(self._listed(wanted))

    def _offsets_in(self, listed: ListedOffsets) -> dict[SplitId, int]:
        if listed.errors:
            raise self._errors.unanswered(listed)
        return {s: answer.offset for s, answer in listed.answers.items()}

    def _listed(self, wanted: Wanted) -> ListedOffsets:
        listed = self._offsets.ask(wanted)
        if listed.answers and not listed.errors:
            # Everything answers: what a connection has complained about is over.
            self._notes.complaint = None
        return listed


def _times(millis: Mapping[SplitId, int]) -> Mapping[SplitId, int]:
    """Return moments as the protocol takes them: negative numbers mean ends of a partition there.

    No record is older than 0.
    """
    if all(moment >= 0 for moment in millis.values()):
        return millis
    return {split_id: max(0, moment) for split_id, moment in millis.items()}


def _epoch(answer: int | None) -> int | None:
    return answer if answer is not None and answer >= 0 else None
