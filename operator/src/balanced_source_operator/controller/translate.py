"""Validate: from the spec to the values that the pure library works with."""

import re

from balanced_source.assigners import STRATEGIES
from balanced_source.connectors.kafka import (
    KafkaCluster,
    KafkaSource,
    KafkaSubscriber,
    PartitionSet,
    ReadLimits,
    TopicList,
    TopicPattern,
    check_properties,
)
from balanced_source.errors import InvalidSpecError
from balanced_source_operator.controller.offsets import to_start, to_stop
from balanced_source_operator.spec import BalancedSourceSpec
from balanced_source_operator.spec import source as spec_source
from balanced_source_operator.spec.base import seconds
from balanced_source_operator.spec.limits import Limits

_KAFKA = "spec.source.kafka"


def to_source(spec: BalancedSourceSpec) -> KafkaSource:
    """The source that the user wants.

    Raises:
        InvalidSpecError: what CEL could not check. Names the field.
    """
    kafka = spec.source.kafka
    return KafkaSource(
        clusters=_clusters(kafka),
        subscriber=_subscriber(kafka.subscription),
        starting_offsets=to_start(kafka.starting_offsets, field=f"{_KAFKA}.startingOffsets"),
        stopping_offsets=to_stop(kafka.stopping_offsets, field=f"{_KAFKA}.stoppingOffsets"),
        assigner=STRATEGIES[spec.assignment.strategy.value](),
        discovery_interval=seconds(kafka.discovery.interval) or None,
        limits=_limits(kafka.limits),
    )


def secret_names(spec: BalancedSourceSpec) -> tuple[str, ...]:
    """Secrets that clusters name, sorted."""
    names = {p.secret_ref.name for cluster in spec.source.kafka.clusters for p in cluster.properties_from}
    return tuple(sorted(names))


def _clusters(kafka: spec_source.KafkaSource) -> tuple[KafkaCluster, ...]:
    clusters: list[KafkaCluster] = []
    for index, cluster in enumerate(kafka.clusters):
        field = f"{_KAFKA}.clusters[{index}]"
        if any(known.name == cluster.name for known in clusters):
            raise InvalidSpecError(f"there are two clusters called {cluster.name}", field=f"{field}.name")
        check_properties(cluster.properties, field=f"{field}.properties")
        clusters.append(
            KafkaCluster(
                name=cluster.name,
                bootstrap_servers=cluster.bootstrap_servers,
                properties=dict(cluster.properties),
                secrets=tuple(p.secret_ref.name for p in cluster.properties_from),
            )
        )
    return tuple(clusters)


def _limits(limits: Limits) -> ReadLimits:
    return ReadLimits(
        max_records=limits.max_offsets_per_trigger,
        max_records_per_split=limits.max_offsets_per_split,
        max_bytes=limits.max_bytes_per_trigger,
        min_records=limits.min_offsets_per_trigger,
        max_delay=seconds(limits.max_trigger_delay),
    )


def _subscriber(subscription: spec_source.Subscription) -> KafkaSubscriber:
    chosen = [s for s in (subscription.topics, subscription.topic_pattern, subscription.partitions) if s is not None]
    if len(chosen) != 1:
        raise InvalidSpecError("set exactly one of topics, topicPattern and partitions", field=f"{_KAFKA}.subscription")
    if subscription.topics is not None:
        return TopicList(tuple(dict.fromkeys(subscription.topics)))
    if subscription.topic_pattern is not None:
        return TopicPattern(_checked_pattern(subscription.topic_pattern))
    listed = subscription.partitions or []
    return PartitionSet(frozenset((entry.topic, p) for entry in listed for p in entry.partitions))


def _checked_pattern(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        raise InvalidSpecError(
            f"{pattern!r} is no regular expression: {error}", field=f"{_KAFKA}.subscription.topicPattern"
        ) from error
    return pattern
