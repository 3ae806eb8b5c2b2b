"""``clusters`` and ``clustersFrom``: how Kafka clusters are reached, and who says which there are."""

from typing import Annotated, Final

from pydantic import ConfigDict, Field

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

_BROKER: Final = r"([A-Za-z_]+://)?([A-Za-z0-9][A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?"
BROKERS: Final = rf"^ *{_BROKER}( *, *{_BROKER})* *$"


Property = Annotated[str, Field(min_length=1, max_length=128, pattern=PROPERTY)]
"""Name of a librdkafka property."""


def _property_rules() -> list[dict[str, str]]:
    """Reserved and secret properties are refused by name, each with its reason."""
    reserved = [
        rule(f"!('{name}' in self)", f"property {name} is reserved: {reason}") for name, reason in RESERVED.items()
    ]
    secret = [
        rule(
            f"!self.exists(name, name.contains('{part}'))",
            f"properties with '{part}' in their name are secrets: put them into a Secret and name it in propertiesFrom",
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
                "&& (!has(self.stoppingOffsets) || self.stoppingOffsets == oldSelf.stoppingOffsets)",
                "stoppingOffsets of a cluster cannot be changed while the source lives: make a new source",
            )
        )
    )

    name: ClusterName
    """Name of the cluster: first part of the identity of its splits, and the column `cluster` of the rows. Never
    give a name to another cluster: its positions would be taken over."""

    bootstrap_servers: Annotated[str, Field(min_length=1, max_length=4096, pattern=BROKERS)]
    """Brokers to begin with: host:port, several separated by commas."""

    properties: Properties = {}
    """librdkafka properties for operator and readers, e.g. security.protocol. Some are reserved."""

    properties_from: Annotated[list[PropertiesSource], Field(max_length=8)] = []
    """Properties from Secrets; they win over `properties`, later ones over earlier ones."""

    active: bool = True
    """False takes the cluster out: its splits leave the readers, their positions are kept for
    removedClusterRetention, and true goes on there. Readers still know how to reach it, and mount its Secrets: what
    was planned before is finished, and its return restarts nothing."""

    starting_offsets: StartingOffsets | None = None
    """Where reading starts on this cluster; wins over that of the source."""

    stopping_offsets: StoppingOffsets | None = None
    """Where reading ends on this cluster; wins over that of the source. Cannot be changed: make a new source."""


class ConfigMapKey(Model):
    """A key of a ConfigMap in the namespace of the BalancedSource."""

    name: ObjectName
    """Name of the ConfigMap."""

    key: MapKey = "clusters.yaml"
    """Key whose value is the metadata."""


class ClustersSource(Model):
    """Clusters that somebody else names, e.g. a platform team that moves streams between clusters."""

    config_map_ref: ConfigMapKey
    """YAML or JSON with `clusters`, a list like spec.source.kafka.clusters, and `streams`, a map: id of a stream →
    name of a cluster → list of topics. Changes are picked up within seconds. While it cannot be read, what was read
    last stays in effect."""


class ClusterMetadata(Model):
    """What a ConfigMap of `clustersFrom` holds; the model of Flink's KafkaMetadataService."""

    clusters: Annotated[list[ClusterSpec], Field(max_length=64)] = []
    """The clusters."""

    streams: Annotated[
        dict[
            Stream, Annotated[dict[ClusterName, Annotated[list[Topic], Field(max_length=1000)]], Field(max_length=64)]
        ],
        Field(max_length=10_000),
    ] = {}
    """Stream → cluster → topics."""
