"""``clusters`` and ``clustersFrom``.

How Kafka clusters are reached, and who says which there are.
"""

from typing import Annotated

from pydantic import ConfigDict, Field

from balanced_source.connectors.kafka import BROKERS
from balanced_source.connectors.kafka.properties import LENDING, RESERVED, SECRET_PARTS
from balanced_source_operator.contract.base import (
    PROPERTY,
    ClusterName,
    MapKey,
    Model,
    ObjectName,
    Text,
    rule,
    with_rules,
)
from balanced_source_operator.kafka.spec.offsets import StartingOffsets, StoppingOffsets, Topic
from balanced_source_operator.kafka.spec.streams import Stream

Property = Annotated[str, Field(min_length=1, max_length=128, pattern=PROPERTY)]
"""Name of a librdkafka property."""


def _property_rules() -> list[dict[str, str]]:
    """Reserved and secret properties are refused by name, each with its reason."""
    reserved = [
        rule(f"!('{name}' in self)", f"property {name} is reserved: {reason}")
        for name, reason in RESERVED.items()
    ]
    secret = [
        rule(
            f"!self.exists(name, name.contains('{part}'))",
            f"properties with '{part}' in their name are secrets: put them into a Secret and name"
            " it in propertiesFrom",
        )
        for part in SECRET_PARTS
    ]
    lending = [
        rule(f"!('{name}' in self)", f"property {name} is not allowed here: {reason}")
        for name, reason in LENDING.items()
    ]
    return [*reserved, *secret, *lending]


Properties = Annotated[
    dict[Property, Text],
    Field(max_length=64, json_schema_extra=with_rules(*_property_rules())),
]
"""librdkafka properties."""


class SecretReference(Model):
    """A Secret in the namespace of the BalancedSource."""

    name: ObjectName
    """Name of the Secret. Each of its keys is a librdkafka property, e.g. sasl.password."""


class PropertiesSource(Model):
    """Where further properties come from."""

    secret_ref: SecretReference
    """The Secret that holds them. Its values never appear in any other object, log or message."""


class ClusterSpec(Model):
    """A Kafka cluster."""

    model_config = ConfigDict(
        json_schema_extra=with_rules(
            rule(
                "has(self.stoppingOffsets) == has(oldSelf.stoppingOffsets) "
                "&& (!has(self.stoppingOffsets) || self.stoppingOffsets =="
                " oldSelf.stoppingOffsets)",
                "stoppingOffsets of a cluster cannot be changed: create a new source instead",
            )
        )
    )

    name: ClusterName
    """Name of the cluster. It identifies the splits of the cluster and appears in the column
    `cluster`. Never reuse the name for another cluster: that cluster would continue from the
    positions of this one."""

    bootstrap_servers: Annotated[str, Field(min_length=1, max_length=4096, pattern=BROKERS)]
    """Brokers for the first connection, as host:port, separated by commas."""

    properties: Properties = {}
    """librdkafka properties for the operator and the readers, such as security.protocol. Some are
    reserved."""

    properties_from: Annotated[list[PropertiesSource], Field(max_length=8)] = []
    """Secrets with further properties. They override `properties`; later Secrets override earlier
    ones."""

    active: bool = True
    """Set to false to stop reading the cluster. Its splits leave the readers, and their positions
    are kept for removedClusterRetention; true continues from there. Readers keep the connection
    settings and Secrets of the cluster, so micro-batches that are already planned complete, and a
    return restarts nothing."""

    starting_offsets: StartingOffsets | None = None
    """Where reading starts on this cluster. Overrides startingOffsets of the source."""

    stopping_offsets: StoppingOffsets | None = None
    """Where reading ends on this cluster. Overrides stoppingOffsets of the source. It cannot be
    changed: create a new source instead."""


class ConfigMapKey(Model):
    """A key of a ConfigMap in the namespace of the BalancedSource."""

    name: ObjectName
    """Name of the ConfigMap."""

    key: MapKey = "clusters.yaml"
    """Key of the ConfigMap that holds the clusters and streams."""


class ClustersSource(Model):
    """Clusters that another team maintains, such as a platform team that moves streams."""

    config_map_ref: ConfigMapKey
    """A ConfigMap that holds YAML or JSON with `clusters` (a list like spec.source.kafka.clusters)
    and `streams` (a map from the id of a stream to a map from the name of a cluster to a list of
    topics). Changes take effect within seconds. While the ConfigMap cannot be read, the last
    content stays in effect."""


class ClusterMetadata(Model):
    """What a ConfigMap of `clustersFrom` holds; the model of Flink's KafkaMetadataService."""

    clusters: Annotated[list[ClusterSpec], Field(max_length=64)] = []
    """The clusters."""

    streams: Annotated[
        dict[
            Stream,
            Annotated[
                dict[ClusterName, Annotated[list[Topic], Field(max_length=1000)]],
                Field(max_length=64),
            ],
        ],
        Field(max_length=10_000),
    ] = {}
    """Stream → cluster → topics."""
