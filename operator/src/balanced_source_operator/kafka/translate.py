"""Validate: from ``spec.source.kafka`` to a source of the library."""

from typing import Final

from balanced_source.assigners import PerScopeAssigner, SplitAssigner
from balanced_source.connectors.kafka import (
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
from balanced_source_operator.contract.half import Common
from balanced_source_operator.kafka.clusters import to_clusters
from balanced_source_operator.kafka.offsets import to_start, to_stop
from balanced_source_operator.kafka.patterns import checked_pattern
from balanced_source_operator.kafka.spec import EnumeratorMode, KafkaSpec
from balanced_source_operator.kafka.spec.limits import Limits
from balanced_source_operator.kafka.spec.subscription import Subscription

MIN_DISCOVERY: Final = 1.0
"""Seconds between two discoveries: each asks every cluster for all of its topics."""


def to_kafka_source(
    kafka: KafkaSpec, common: Common, metadata: str | None, *, field: str
) -> KafkaSource:
    """Return the source that the user asks for.

    Args:
        kafka: the spec.
        common: what does not depend on the kind.
        metadata: content of the ConfigMap of `clustersFrom`, if the spec names one.
        field: path of the spec.

    Raises:
        InvalidSpecError: what CEL could not check. Names the field.
    """
    clusters, inactive = to_clusters(kafka, metadata, field=field)
    return KafkaSource(
        clusters=clusters,
        inactive=inactive,
        subscriber=_subscriber(kafka.subscription, field=f"{field}.subscription"),
        starting_offsets=to_start(kafka.starting_offsets, field=f"{field}.startingOffsets"),
        stopping_offsets=to_stop(kafka.stopping_offsets, field=f"{field}.stoppingOffsets"),
        assigner=_assigner(kafka, common.assigner),
        rebalance_policy=common.rebalance_policy,
        discovery_interval=to_discovery_interval(kafka, field=field),
        failure_threshold=kafka.discovery.failure_threshold,
        retention=seconds(kafka.removed_cluster_retention),
        limits=_limits(kafka.limits),
        commit_group=kafka.commit_group,
        on_data_loss=OnDataLoss(kafka.on_data_loss.value),
    )


def _assigner(kafka: KafkaSpec, inner: SplitAssigner) -> SplitAssigner:
    return PerScopeAssigner(inner) if kafka.enumerator_mode is EnumeratorMode.PER_CLUSTER else inner


def to_discovery_interval(kafka: KafkaSpec, *, field: str) -> float | None:
    """Return the seconds between two discoveries of a source without an end; None if it looks once.

    Raises:
        InvalidSpecError: they are too few. Names the field.
    """
    duration = kafka.discovery.interval
    interval = seconds(duration)
    if 0 < interval < MIN_DISCOVERY:
        raise InvalidSpecError(
            f"{duration} is too short: use at least {MIN_DISCOVERY:.0f}s, or 0 to look once",
            field=f"{field}.discovery.interval",
        )
    return interval or None


def _limits(limits: Limits) -> ReadLimits:
    return ReadLimits(
        max_records=limits.max_offsets_per_trigger,
        max_records_per_split=limits.max_offsets_per_split,
        max_bytes=limits.max_bytes_per_trigger,
        min_records=limits.min_offsets_per_trigger,
        max_delay=seconds(limits.max_trigger_delay),
    )


def _subscriber(subscription: Subscription, *, field: str) -> KafkaSubscriber:
    if subscription.topics is not None:
        return TopicList(tuple(dict.fromkeys(subscription.topics)))
    if subscription.topic_pattern is not None:
        exclude = subscription.exclude_pattern
        return TopicPattern(
            checked_pattern(subscription.topic_pattern, field=f"{field}.topicPattern"),
            None if exclude is None else checked_pattern(exclude, field=f"{field}.excludePattern"),
        )
    if subscription.partitions is not None:
        return PartitionSet(
            frozenset(
                (entry.topic, p) for entry in subscription.partitions for p in entry.partitions
            )
        )
    if subscription.streams is None and subscription.stream_pattern is None:
        raise InvalidSpecError(
            "set exactly one of topics, topicPattern, partitions and streams", field=field
        )
    return TopicList(())
