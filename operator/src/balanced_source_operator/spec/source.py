"""``spec.source``: what is read."""

from typing import Annotated, Final

from pydantic import ConfigDict, Field

from balanced_source.connectors.kafka.properties import RESERVED, SECRET_PARTS
from balanced_source_operator.spec.base import Duration, Model, rule, with_rules
from balanced_source_operator.spec.limits import Limits
from balanced_source_operator.spec.offsets import StartingOffsets, StoppingOffsets, Topic

NAME_PATTERN: Final = r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$"


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
    return [*reserved, *secret]


Properties = Annotated[
    dict[Annotated[str, Field(max_length=128)], Annotated[str, Field(max_length=4096)]],
    Field(max_length=64, json_schema_extra=with_rules(*_property_rules())),
]
"""librdkafka properties."""


class SecretReference(Model):
    """A Secret in the namespace of the BalancedSource."""

    name: Annotated[str, Field(min_length=1, max_length=253)]
    """Name of the Secret. Each of its keys is a librdkafka property, e.g. sasl.password."""


class PropertiesSource(Model):
    """Where further properties come from."""

    secret_ref: SecretReference
    """The Secret that holds them. Its values never appear in any other object, log or message."""


class KafkaCluster(Model):
    """A Kafka cluster."""

    name: Annotated[str, Field(min_length=1, max_length=63, pattern=NAME_PATTERN)]
    """Name of the cluster: first part of the identity of its splits, and the column `cluster` of the rows. Never
    give a name to another cluster: its positions would be taken over."""

    bootstrap_servers: Annotated[str, Field(min_length=1, max_length=4096)]
    """Brokers to begin with: host:port, several separated by commas."""

    properties: Properties = {}
    """librdkafka properties for operator and readers, e.g. security.protocol. Some are reserved."""

    properties_from: Annotated[list[PropertiesSource], Field(max_length=8)] = []
    """Properties from Secrets; they win over `properties`, later ones over earlier ones."""


class TopicPartitions(Model):
    """Partitions of one topic."""

    topic: Topic
    """Name of the topic."""

    partitions: Annotated[list[Annotated[int, Field(ge=0, le=2147483647)]], Field(min_length=1, max_length=1000)]
    """Numbers of the partitions."""


class Subscription(Model):
    """Which partitions are read; exactly one of the three. The same choice applies to every cluster."""

    model_config = ConfigDict(
        json_schema_extra=with_rules(
            rule(
                "[has(self.topics), has(self.topicPattern), has(self.partitions)].filter(x, x).size() == 1",
                "set exactly one of topics, topicPattern and partitions",
            )
        )
    )

    topics: Annotated[list[Topic], Field(min_length=1, max_length=1000)] | None = None
    """All partitions of these topics."""

    topic_pattern: Annotated[str, Field(min_length=1, max_length=512)] | None = None
    """All partitions of the topics whose whole name matches this regular expression."""

    partitions: Annotated[list[TopicPartitions], Field(min_length=1, max_length=256)] | None = None
    """Exactly these partitions."""


class Discovery(Model):
    """Looking for new topics and partitions."""

    interval: Duration = "5m"
    """Time between two looks. 0 looks once, when the source starts."""


class KafkaSource(Model):
    """Topics on one Kafka cluster or many."""

    model_config = ConfigDict(
        json_schema_extra=with_rules(
            rule(
                "has(self.stoppingOffsets) == has(oldSelf.stoppingOffsets) "
                "&& (!has(self.stoppingOffsets) || self.stoppingOffsets == oldSelf.stoppingOffsets)",
                "stoppingOffsets cannot be changed while the source lives: make a new source",
            )
        )
    )

    clusters: Annotated[
        list[KafkaCluster],
        Field(
            min_length=1,
            max_length=32,
            json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
        ),
    ]
    """The clusters."""

    subscription: Subscription
    """Which topics and partitions."""

    starting_offsets: StartingOffsets = StartingOffsets()
    """Where reading starts."""

    stopping_offsets: StoppingOffsets | None = None
    """Where reading ends; the query ends by itself then, and the source is Finished. Absent: it reads on for ever.
    Cannot be changed: make a new source."""

    limits: Limits = Limits()
    """How much a micro-batch reads."""

    discovery: Discovery = Discovery()
    """How new topics and partitions are found."""


class Source(Model):
    """What is read; exactly one kind."""

    kafka: KafkaSource
    """Topics on Kafka clusters."""
