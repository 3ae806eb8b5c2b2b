"""The Kafka source: partitions of topics on one or many clusters.

Scopes of discovery are the clusters.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from balanced_source.api import (
    AsyncCall,
    Boundedness,
    Measure,
    Position,
    RebalancePolicy,
    SplitId,
    SupportsSplitReassignmentOnRecovery,
    SupportsSwitchTo,
    SwitchPosition,
)
from balanced_source.assigners import RoundRobinAssigner, SplitAssigner
from balanced_source.connectors.discovery import (
    Discover,
    Discovered,
    DiscoveringSource,
    Initialize,
)
from balanced_source.connectors.kafka.cluster import KafkaCluster
from balanced_source.connectors.kafka.data_loss import (
    CONSENT,
    LISTED,
    Gap,
    OnDataLoss,
    commits_ahead,
    commits_overtaken,
    records_before_time,
    records_behind_history,
    topic_begun_late,
    topic_of_history_recreated,
    topic_unread,
)
from balanced_source.connectors.kafka.limits import ReadLimits
from balanced_source.connectors.kafka.offsets import (
    EARLIEST,
    TOPIC_ID,
    AfterHistory,
    OffsetsInitializer,
)
from balanced_source.connectors.kafka.settings import KIND, KafkaReaderSettings
from balanced_source.connectors.kafka.split import KafkaPartitionSplit, split_of
from balanced_source.connectors.kafka.stops import other_end
from balanced_source.connectors.kafka.subscriber import KafkaSubscriber
from balanced_source.connectors.kafka.titles import titled
from balanced_source.errors import ContractViolationError, InvalidSpecError
from balanced_source.names import counted, shown


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoverKafka(Discover):
    """List the subscribed partitions of a cluster; the result is a `Discovered`."""

    scope: str
    round: int
    cluster: KafkaCluster
    subscriber: KafkaSubscriber


@dataclass(frozen=True, slots=True, kw_only=True)
class InitializeKafka(Initialize):
    """Resolve start and stop offsets of partitions of a cluster.

    The result is a sequence of `KafkaPartitionSplit`.
    """

    scope: str
    split_ids: tuple[SplitId, ...]
    cluster: KafkaCluster
    starting_offsets: OffsetsInitializer
    stopping_offsets: OffsetsInitializer | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaSource(
    DiscoveringSource[KafkaPartitionSplit], SupportsSplitReassignmentOnRecovery, SupportsSwitchTo
):
    """A value: equal settings make equal sources.

    Attributes:
        clusters: names are unique. What a cluster says of its own wins over what is said here.
        inactive: clusters that are not read; readers know how to reach them all the same, for a
            micro-batch that was planned before they were taken out may have to be read again.
        subscriber: the same choice on every cluster.
        starting_offsets: for the partitions of a cluster's first discovery; later ones start at the
            earliest offset.
        stopping_offsets: where reading ends; None reads on forever.
        assigner: owner policy.
        rebalance_policy: when splits may move.
        discovery_interval: seconds; None looks once, and then no reader ever gets a further split.
            Always None for a source with an end: what it reads is fixed when it starts.
        failure_threshold: failures of a cluster in a row until that is a problem to tell people of.
        retention: seconds for which positions of removed partitions are kept.
        limits: of each micro-batch.
        on_data_loss: what happens when records are gone before they were read.
        commit_group: consumer group that is told how far the query is; None tells no one.
    """

    clusters: tuple[KafkaCluster, ...]
    subscriber: KafkaSubscriber
    starting_offsets: OffsetsInitializer = EARLIEST
    stopping_offsets: OffsetsInitializer | None = None
    assigner: SplitAssigner = field(default_factory=RoundRobinAssigner)
    rebalance_policy: RebalancePolicy = field(default_factory=RebalancePolicy)
    discovery_interval: float | None = 300.0
    failure_threshold: int = 1
    retention: float = 0.0
    limits: ReadLimits = field(default_factory=ReadLimits)
    on_data_loss: OnDataLoss = OnDataLoss.FAIL
    commit_group: str | None = None
    inactive: tuple[KafkaCluster, ...] = ()

    def __post_init__(self) -> None:
        # What a bounded source reads is fixed when it starts, so nothing is looked for later.
        if self.boundedness is Boundedness.BOUNDED:
            object.__setattr__(self, "discovery_interval", None)

    @property
    def boundedness(self) -> Boundedness:
        """Bounded if every cluster has an end; else those that have one just stop there."""
        # Without any cluster the source's own setting tells: an empty list must not count as an
        # end.
        ends = [cluster.stopping_offsets or self.stopping_offsets for cluster in self.clusters] or [
            self.stopping_offsets
        ]
        return Boundedness.CONTINUOUS_UNBOUNDED if None in ends else Boundedness.BOUNDED

    @property
    # An attribute of the contract, derived here
    def may_lose(self) -> bool:  # type: ignore[override]
        return self.on_data_loss is OnDataLoss.CONTINUE

    @property
    def kind(self) -> str:
        return KIND

    def scopes(self) -> tuple[str, ...]:
        return tuple(cluster.name for cluster in self.clusters)

    def paused_scopes(self) -> frozenset[str]:
        return frozenset(cluster.name for cluster in self.inactive)

    def scope_of(self, split_id: SplitId) -> str:
        return str(split_id[0])

    def subscribes(self, split_id: SplitId) -> bool:
        cluster, topic, partition = split_id
        found = self._find(str(cluster))
        return found is not None and self._subscriber(found).subscribes(str(topic), int(partition))

    def discover(self, scope: str, round_number: int) -> DiscoverKafka:
        cluster = self._cluster(scope)
        return DiscoverKafka(
            scope=scope, round=round_number, cluster=cluster, subscriber=self._subscriber(cluster)
        )

    def initialize(
        self, scope: str, split_ids: Collection[SplitId], *, is_first: bool
    ) -> InitializeKafka:
        cluster = self._cluster(scope)
        start = cluster.starting_offsets or self.starting_offsets
        return InitializeKafka(
            scope=scope,
            split_ids=tuple(split_ids),
            cluster=cluster,
            starting_offsets=start if is_first else start.later(),
            stopping_offsets=cluster.stopping_offsets or self.stopping_offsets,
        )

    def unread(self, splits: Collection[KafkaPartitionSplit], *, exists: bool) -> list[str]:
        gaps = _by_topic(
            (split, Gap(partition=split.partition, start=split.offset)) for split in splits
        )
        texts = [
            topic_unread(*self._in_words(place), found, exists=exists)
            for place, found in gaps.items()
        ]
        return _first(texts, "may have had unread records when deleted")

    def begun_late(self, splits: Collection[KafkaPartitionSplit]) -> list[str]:
        begins = {split: self._first_unread(split) for split in splits}
        gaps = _by_topic(
            (split, Gap(partition=split.partition, start=first, end=split.offset))
            for split, first in begins.items()
            if split.offset > first
        )
        texts = [
            topic_begun_late(
                *self._in_words(place),
                found,
                is_of_history=self._history_of(*place) is not None,
            )
            for place, found in gaps.items()
        ]
        return _first(texts, "did not begin at offset 0 when found")

    def _first_unread(self, split: KafkaPartitionSplit) -> int:
        """Return where a partition that is found late begins if retention took nothing."""
        history = self._history_of(split.cluster, split.topic, split.topic_id)
        return 0 if history is None else history.first_unread(split.topic, split.partition)

    def _history_of(self, cluster: str, topic: str, topic_id: str | None) -> AfterHistory | None:
        """Return the history that the source follows, if it is known to be of this topic."""
        start = self.starting_offsets
        if isinstance(start, AfterHistory) and start.is_same(cluster, topic, topic_id):
            return start
        return None

    def begun_elsewhere(self, splits: Collection[KafkaPartitionSplit]) -> list[str]:
        if not isinstance(history := self.starting_offsets, AfterHistory):
            return self._beside_commits(splits)
        topics = {(s.cluster, s.topic, s.topic_id) for s in splits}
        other = {topic for topic in topics if history.is_other(*topic)}
        texts = [
            topic_of_history_recreated(*self._in_words(place)) for place in sorted(other, key=str)
        ]
        behind = [
            (s, history.first_unread(s.topic, s.partition))
            for s in splits
            if (s.cluster, s.topic, s.topic_id) not in other
        ]
        gaps = _by_topic(
            (s, Gap(partition=s.partition, start=first, end=s.offset))
            for s, first in behind
            if history.millis is None and s.topic in history.topics and s.offset > first
        )
        texts += [
            records_behind_history(*self._in_words(place), found) for place, found in gaps.items()
        ]
        texts += self._behind_time(history, [split for split, _ in behind])
        return _first(texts, "did not begin where the history ends")

    def _beside_commits(self, splits: Collection[KafkaPartitionSplit]) -> list[str]:
        commits = [(s, s.void_commit) for s in splits if s.void_commit is not None]
        gaps = _by_topic(
            (s, Gap(partition=s.partition, start=commit, end=s.offset))
            for s, commit in commits
            if commit < s.offset
        )
        texts = [commits_overtaken(*self._in_words(place), found) for place, found in gaps.items()]
        ahead: dict[tuple[str, str, str | None], dict[int, tuple[int, int]]] = {}
        for s, commit in commits:
            if commit > s.offset:
                place = (s.cluster, s.topic, s.topic_id)
                ahead.setdefault(place, {})[s.partition] = commit, s.offset
        texts += [
            commits_ahead(*self._in_words(place), found)
            for place, found in sorted(ahead.items(), key=lambda item: item[0][:2])
        ]
        return _first(texts, "did not hold the committed offsets")

    def _behind_time(
        self, history: AfterHistory, splits: Sequence[KafkaPartitionSplit]
    ) -> list[str]:
        cut = _by_topic(
            (s, Gap(partition=s.partition, start=0, end=s.offset)) for s in splits if s.is_cut
        )
        return [
            records_before_time(*self._in_words(place), found, history.millis or 0)
            for place, found in cut.items()
        ]

    def recreation_advice(self) -> str:
        return CONSENT

    def create_split(
        self, split_id: SplitId, position: Position, attributes: Mapping[str, Any]
    ) -> KafkaPartitionSplit:
        return split_of(split_id, position, attributes)

    def why_not_continued(self, split: KafkaPartitionSplit) -> str:
        """Compare the end of a partition with what is asked for now, as far as it is a number."""
        cluster = self._find(split.cluster)
        if cluster is None or not self.subscribes(split.split_id):
            return ""  # it leaves
        return other_end(split, cluster.stopping_offsets or self.stopping_offsets)

    def reader_settings(self) -> Mapping[str, Any]:
        settings = KafkaReaderSettings(
            # A micro-batch that was planned before a cluster was taken out may have to be read
            # again.
            clusters={cluster.name: cluster for cluster in (*self.clusters, *self.inactive)},
            limits=self.limits,
            on_data_loss=self.on_data_loss,
            commit_group=self.commit_group,
        )
        return {KIND: settings.to_json()}

    def check_switch(self, measure: Measure, *, field: str) -> None:
        if measure.offsets is not None and len(self.clusters) > 1:
            raise InvalidSpecError(
                f"the offsets of a history do not say which of {len(self.clusters)} clusters they"
                " are of: start by time, or read one cluster",
                field=field,
            )
        for topic, topic_id in measure.identities:
            if TOPIC_ID.fullmatch(topic_id) is None:
                raise InvalidSpecError(
                    f"{shown(topic_id)} cannot be the id of topic {shown(topic)}: write the TopicId"
                    " that kafka-topics --describe shows, which has 22 characters",
                    field=field,
                )

    def starting_after(self, position: SwitchPosition) -> Self:
        """The position counts for all clusters, whatever their own settings say."""
        # The history has the records of that very millisecond, so reading starts behind it.
        millis = None if position.time is None else position.time + 1
        topics = frozenset(topic for topic, _ in position.offsets)
        subscribers = [self._subscriber(cluster) for cluster in self.clusters]
        is_read = any(s.subscribes(*place) for s in subscribers for place in position.offsets)
        start = AfterHistory(
            millis=millis,
            offsets=position.offsets,
            topics=topics,
            is_foreign=bool(topics) and not is_read,
            may_lose=self.may_lose,
            # Offsets say of which topics; other topics are read from their beginning anyway.
            meanings=position.meanings,
        )
        clusters = tuple(replace(cluster, starting_offsets=None) for cluster in self.clusters)
        return replace(self, clusters=clusters, starting_offsets=start)

    def looks(self) -> Mapping[str, DiscoverKafka]:
        return {scope: self.discover(scope, 0) for scope in self.scopes()}

    def meanings(self, call: AsyncCall, result: Any) -> Mapping[str, str]:
        if not (isinstance(call, DiscoverKafka) and isinstance(result, Discovered)):
            return {}
        found = {str(s[1]): identity for s, identity in result.identities.items()}
        refused = {str(head[1]) for head in result.refused}
        missing = frozenset(call.subscriber.topics or ()) - refused - found.keys()
        return {**dict.fromkeys(missing, ""), **found}

    def _subscriber(self, cluster: KafkaCluster) -> KafkaSubscriber:
        return cluster.subscriber or self.subscriber

    def _cluster(self, name: str) -> KafkaCluster:
        if (cluster := self._find(name)) is None:
            raise ContractViolationError(
                f"cluster {name!r} is not part of the source: ask for one of {self.scopes()}"
            )
        return cluster

    def _in_words(self, place: tuple[str, str, str | None]) -> tuple[str, str, str | None]:
        """Return cluster, topic and id of a topic as messages take them."""
        name, topic, topic_id = place
        cluster = self._find(name)
        return titled(name) if cluster is None else cluster.title, topic, topic_id

    def _find(self, name: str) -> KafkaCluster | None:
        return next((cluster for cluster in self.clusters if cluster.name == name), None)


def _first(texts: list[str], what: str) -> list[str]:
    """The first sentences, and one that says how many topics are left out."""
    more = len(texts) - LISTED
    rest = [f"{counted(more, 'more topic')} {what}"] if more > 0 else []
    return texts[:LISTED] + rest


def _by_topic(
    gaps: Iterable[tuple[KafkaPartitionSplit, Gap]],
) -> dict[tuple[str, str, str | None], list[Gap]]:
    """Gaps by cluster, topic and id of the topic; topics and partitions in their order."""
    found: dict[tuple[str, str, str | None], list[Gap]] = {}
    for split, gap in sorted(gaps, key=lambda pair: pair[0].split_id):
        found.setdefault((split.cluster, split.topic, split.topic_id), []).append(gap)
    return found
