"""Validate: from the spec to the values that the pure library works with."""

from collections.abc import Iterable
from typing import Final

from balanced_source.api import RebalanceMode, RebalancePolicy
from balanced_source.assigners import STRATEGIES, PerScopeAssigner, SplitAssigner
from balanced_source.connectors.kafka import (
    KafkaCluster,
    KafkaSource,
    KafkaSubscriber,
    OnDataLoss,
    PartitionSet,
    ReadLimits,
    TopicList,
    TopicPattern,
)
from balanced_source.durations import seconds
from balanced_source.errors import InvalidSpecError
from balanced_source_operator.controller.clusters import to_clusters
from balanced_source_operator.controller.offsets import to_start, to_stop
from balanced_source_operator.controller.patterns import checked_pattern
from balanced_source_operator.spec import Assignment, BalancedSourceSpec, Strategy
from balanced_source_operator.spec.limits import Limits
from balanced_source_operator.spec.source import EnumeratorMode
from balanced_source_operator.spec.subscription import Subscription

_KAFKA = "spec.source.kafka"

_FIXED: Final = "cannot be changed while the source lives: make a new source"

MIN_DISCOVERY: Final = 1.0
"""Seconds between two discoveries: each asks every cluster for all of its topics."""

MIN_INTERVAL: Final = 30.0
"""Seconds between two rebalances of mode Drift that a user may ask for: loads must be observed in between."""


def to_source(spec: BalancedSourceSpec, metadata: str | None = None) -> KafkaSource:
    """The source that the user wants.

    Args:
        spec: what the user wrote.
        metadata: content of the ConfigMap of `clustersFrom`, if the spec names one.

    Raises:
        InvalidSpecError: what CEL could not check. Names the field.
    """
    kafka = spec.source.kafka
    clusters, inactive = to_clusters(kafka, metadata, field=_KAFKA)
    return KafkaSource(
        clusters=clusters,
        inactive=inactive,
        subscriber=_subscriber(kafka.subscription),
        starting_offsets=to_start(kafka.starting_offsets, field=f"{_KAFKA}.startingOffsets"),
        stopping_offsets=to_stop(kafka.stopping_offsets, field=f"{_KAFKA}.stoppingOffsets"),
        assigner=_assigner(spec),
        rebalance_policy=_rebalance_policy(spec.assignment),
        discovery_interval=_discovery_interval(kafka.discovery.interval),
        failure_threshold=kafka.discovery.failure_threshold,
        retention=seconds(kafka.removed_cluster_retention),
        limits=_limits(kafka.limits),
        commit_group=kafka.commit_group,
        on_data_loss=OnDataLoss(kafka.on_data_loss.value),
    )


def _discovery_interval(duration: str) -> float | None:
    interval = seconds(duration)
    if 0 < interval < MIN_DISCOVERY:
        raise InvalidSpecError(
            f"{duration} is too short: use at least {MIN_DISCOVERY:.0f}s, or 0 to look once",
            field=f"{_KAFKA}.discovery.interval",
        )
    return interval or None


def check_ends(before: KafkaSource, after: KafkaSource) -> None:
    """Refuse a changed end where the API server cannot: in metadata of `clustersFrom`, and in local mode.

    Splits carry their end from the moment they are found: another one would be in effect for some and not for others.

    Raises:
        InvalidSpecError: names what has changed.
    """
    if before.stopping_offsets != after.stopping_offsets:
        raise InvalidSpecError(_FIXED, field=f"{_KAFKA}.stoppingOffsets")
    known = {cluster.name: cluster.stopping_offsets for cluster in (*before.clusters, *before.inactive)}
    for cluster in (*after.clusters, *after.inactive):
        if known.get(cluster.name, cluster.stopping_offsets) != cluster.stopping_offsets:
            raise InvalidSpecError(_FIXED, field=f"cluster {cluster.name}: stoppingOffsets")


def _rebalance_policy(assignment: Assignment) -> RebalancePolicy:
    wanted = assignment.rebalance
    if assignment.strategy is Strategy.HASH and wanted.mode.value == RebalanceMode.DRIFT.value:
        raise InvalidSpecError("Drift has no meaning for strategy Hash", field="spec.assignment.rebalance.mode")
    interval = seconds(wanted.min_interval)
    if interval < MIN_INTERVAL:
        raise InvalidSpecError(f"at least {MIN_INTERVAL:.0f}s", field="spec.assignment.rebalance.minInterval")
    return RebalancePolicy(
        mode=RebalanceMode(wanted.mode.value),
        max_imbalance=wanted.max_imbalance,
        min_interval=interval,
        max_moves=wanted.max_moves,
    )


def secret_names(clusters: Iterable[KafkaCluster]) -> tuple[str, ...]:
    """Secrets that clusters name, sorted."""
    return tuple(sorted({name for cluster in clusters for name in cluster.secrets}))


def _assigner(spec: BalancedSourceSpec) -> SplitAssigner:
    inner = STRATEGIES[spec.assignment.strategy.value]()
    return PerScopeAssigner(inner) if spec.source.kafka.enumerator_mode is EnumeratorMode.PER_CLUSTER else inner


def _limits(limits: Limits) -> ReadLimits:
    return ReadLimits(
        max_records=limits.max_offsets_per_trigger,
        max_records_per_split=limits.max_offsets_per_split,
        max_bytes=limits.max_bytes_per_trigger,
        min_records=limits.min_offsets_per_trigger,
        max_delay=seconds(limits.max_trigger_delay),
    )


def _subscriber(subscription: Subscription) -> KafkaSubscriber:
    field = f"{_KAFKA}.subscription"
    if subscription.topics is not None:
        return TopicList(tuple(dict.fromkeys(subscription.topics)))
    if subscription.topic_pattern is not None:
        exclude = subscription.exclude_pattern
        return TopicPattern(
            checked_pattern(subscription.topic_pattern, field=f"{field}.topicPattern"),
            None if exclude is None else checked_pattern(exclude, field=f"{field}.excludePattern"),
        )
    if subscription.partitions is not None:
        return PartitionSet(frozenset((entry.topic, p) for entry in subscription.partitions for p in entry.partitions))
    if subscription.streams is None and subscription.stream_pattern is None:
        raise InvalidSpecError("set exactly one of topics, topicPattern, partitions and streams", field=field)
    return TopicList(())
