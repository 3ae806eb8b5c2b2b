"""Validate: from ``clusters``, or the metadata of ``clustersFrom``, to clusters of the library."""

import functools
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from pydantic import ValidationError

from balanced_source.connectors.kafka import (
    ASKED_SERVER,
    KafkaCluster,
    TopicList,
    check_not_lending,
    check_properties,
    translated,
)
from balanced_source.errors import InvalidSpecError
from balanced_source_operator.contract import yaml_text
from balanced_source_operator.contract.addresses import check_endpoint
from balanced_source_operator.contract.errors import in_words
from balanced_source_operator.kafka.offsets import to_start, to_stop
from balanced_source_operator.kafka.patterns import checked_pattern, matches
from balanced_source_operator.kafka.spec import WORDS, KafkaSpec
from balanced_source_operator.kafka.spec import clusters as spec
from balanced_source_operator.kafka.spec.subscription import Subscription

Clusters: TypeAlias = tuple[tuple[KafkaCluster, ...], tuple[KafkaCluster, ...]]


def to_clusters(kafka: KafkaSpec, metadata: str | None, *, field: str) -> Clusters:
    """The clusters that are read, and those that are known but not read.

    Args:
        kafka: the spec.
        metadata: content of the ConfigMap, if the spec names one.
        field: path of the spec.

    Raises:
        InvalidSpecError: names the field, or the place in the metadata.
    """
    if kafka.clusters_from is None:
        return _clusters(kafka.clusters or (), {}, field=f"{field}.clusters")
    reference = kafka.clusters_from.config_map_ref
    where = f"ConfigMap {reference.name}, key {reference.key}"
    if metadata is None:
        raise InvalidSpecError("there is no such ConfigMap, or no such key: create it", field=where)
    found = _parsed(metadata, where)
    topics = _topics(found, kafka.subscription, field=f"{field}.subscription", where=where)
    return _clusters(
        [c for c in found.clusters if c.name in topics], topics, field=f"{where}: clusters"
    )


@functools.lru_cache(maxsize=64)
def _parsed(text: str, where: str) -> spec.ClusterMetadata:
    try:
        return spec.ClusterMetadata.model_validate(yaml_text.load(text) or {})
    except yaml_text.YamlError as error:
        raise InvalidSpecError(str(error), field=where) from error
    except ValidationError as error:
        place, message = in_words(error, WORDS)
        raise InvalidSpecError(message, field=f"{where}: {place}") from error


def _topics(
    metadata: spec.ClusterMetadata, subscription: Subscription, *, field: str, where: str
) -> Mapping[str, tuple[str, ...]]:
    """Topics of the chosen streams, by cluster."""
    chosen = _streams(metadata, subscription, field)
    known = {cluster.name for cluster in metadata.clusters}
    topics: dict[str, list[str]] = {}
    for stream in chosen:
        for cluster, names in metadata.streams[stream].items():
            if cluster not in known:
                raise InvalidSpecError(
                    f"there is no cluster {cluster}", field=f"{where}: streams.{stream}"
                )
            topics.setdefault(cluster, []).extend(names)
    return {cluster: tuple(sorted(set(names))) for cluster, names in topics.items()}


def _streams(metadata: spec.ClusterMetadata, subscription: Subscription, field: str) -> list[str]:
    if subscription.stream_pattern is not None:
        pattern = checked_pattern(subscription.stream_pattern, field=f"{field}.streamPattern")
        return [stream for stream in sorted(metadata.streams) if matches(pattern, stream)]
    wanted = subscription.streams or []
    if missing := sorted(set(wanted) - metadata.streams.keys()):
        raise InvalidSpecError(f"the metadata has no stream {missing[0]}", field=f"{field}.streams")
    return sorted(set(wanted))


def _clusters(
    clusters: Iterable[spec.ClusterSpec], topics: Mapping[str, tuple[str, ...]], *, field: str
) -> Clusters:
    made: dict[str, KafkaCluster] = {}
    for index, cluster in enumerate(clusters):
        path = f"{field}[{index}]"
        if cluster.name in made:
            raise InvalidSpecError(
                f"there are two clusters called {cluster.name}", field=f"{path}.name"
            )
        check_properties(cluster.properties, field=f"{path}.properties")
        check_not_lending(cluster.properties, field=f"{path}.properties")
        check_endpoint(
            cluster.properties.get(ASKED_SERVER), field=f"{path}.properties: {ASKED_SERVER}"
        )
        made[cluster.name] = _cluster(cluster, topics.get(cluster.name), field=path)
    active = {cluster.name for cluster in clusters if cluster.active}
    read = tuple(cluster for name, cluster in made.items() if name in active)
    return read, tuple(cluster for name, cluster in made.items() if name not in active)


def _cluster(
    cluster: spec.ClusterSpec, topics: tuple[str, ...] | None, *, field: str
) -> KafkaCluster:
    starting = cluster.starting_offsets
    return KafkaCluster(
        name=cluster.name,
        bootstrap_servers=cluster.bootstrap_servers,
        properties=translated(cluster.properties, field=f"{field}.properties"),
        secrets=tuple(p.secret_ref.name for p in cluster.properties_from),
        subscriber=TopicList(topics) if topics is not None else None,
        starting_offsets=to_start(starting, field=f"{field}.startingOffsets")
        if starting is not None
        else None,
        stopping_offsets=to_stop(cluster.stopping_offsets, field=f"{field}.stoppingOffsets"),
    )
