"""A Kafka cluster, as the user named it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from balanced_source.api import Json
from balanced_source.connectors.kafka.offsets import OffsetsInitializer
from balanced_source.connectors.kafka.subscriber import KafkaSubscriber
from balanced_source.connectors.kafka.titles import titled, untitled

READ_COMMITTED: Final = "read_committed"

_BROKER: Final = r"([A-Za-z_]+://)?([A-Za-z0-9][A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?"
BROKERS: Final = rf"^ *{_BROKER}( *, *{_BROKER})* *$"
"""Addresses of brokers, for the custom resource and for options."""

_BROKERS: Final = re.compile(BROKERS[:-1] + r"\Z")


def is_committed(properties: Mapping[str, Any]) -> bool:
    """Return whether a client with these properties reads committed records only.

    librdkafka ignores the case of such values, and spaces before them.
    """
    level = str(properties.get("isolation.level", READ_COMMITTED))
    return level.strip().lower() == READ_COMMITTED


def is_brokers(text: str) -> bool:
    """Return whether the text is ``host:port``, or several of them separated by commas."""
    return _BROKERS.match(text) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaCluster:
    """How to reach a cluster, and what is special about it; without secrets.

    Attributes:
        name: first part of its split ids; never reused for another cluster.
        bootstrap_servers: ``host:port[,host:port…]``.
        properties: librdkafka properties, checked against the reserved ones.
        secrets: names of Secrets (or folders of files) that hold further properties; later ones
            win.
        subscriber: choice of partitions on this cluster; None: that of the source.
        starting_offsets: the same for the start.
        stopping_offsets: the same for the end.
        is_named: whether the name is the user's; the options of a query give none.
    """

    name: str
    bootstrap_servers: str
    properties: Mapping[str, str] = field(default_factory=dict)
    secrets: tuple[str, ...] = ()
    subscriber: KafkaSubscriber | None = None
    starting_offsets: OffsetsInitializer | None = None
    stopping_offsets: OffsetsInitializer | None = None
    is_named: bool = True

    @property
    def title(self) -> str:
        """What messages call it: a name that the user did not give would mean nothing to them."""
        return titled(self.name) if self.is_named else untitled(self.bootstrap_servers)

    @property
    def is_read_committed(self) -> bool:
        """Whether records of open transactions are held back; librdkafka's default."""
        return is_committed(self.properties)

    def to_json(self) -> Json:
        """For readers: how to connect."""
        return {
            "bootstrapServers": self.bootstrap_servers,
            "properties": dict(self.properties),
            "secrets": list(self.secrets),
            **({} if self.is_named else {"isNamed": False}),
        }

    @classmethod
    def from_json(cls, name: str, data: Mapping[str, Any]) -> "KafkaCluster":
        """Inverse of `to_json`."""
        return cls(
            name=name,
            bootstrap_servers=data["bootstrapServers"],
            properties=dict(data["properties"]),
            secrets=tuple(data["secrets"]),
            is_named=bool(data.get("isNamed", True)),
        )
