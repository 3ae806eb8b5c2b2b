"""librdkafka properties that users may set, and those that they may not, each with the reason."""

from collections.abc import Mapping
from typing import Final

from balanced_source.errors import InvalidSpecError

RESERVED: Final[Mapping[str, str]] = {
    "bootstrap.servers": "set it as bootstrapServers of the cluster",
    "metadata.broker.list": "set bootstrapServers of the cluster",
    "group.id": "readers are assigned by the enumerator, never by a consumer group",
    "group.instance.id": "readers are assigned by the enumerator, never by a consumer group",
    "group.protocol": "readers are assigned by the enumerator, never by a consumer group",
    "group.remote.assignor": "readers are assigned by the enumerator, never by a consumer group",
    "partition.assignment.strategy": "set spec.assignment.strategy",
    "enable.auto.commit": "positions live in Spark's checkpoint",
    "auto.commit.interval.ms": "positions live in Spark's checkpoint",
    "enable.auto.offset.store": "positions live in Spark's checkpoint",
    "auto.offset.reset": "set spec.source.kafka.startingOffsets",
    "enable.partition.eof": "the readers need it to find the end of a range",
    "client.id": "made from source, cluster and reader, so that broker logs and quotas tell who it is",
    "topic.blacklist": "set spec.source.kafka.subscription",
    "plugin.library.paths": "would load code into readers and operator",
    "error_cb": "no callbacks in a spec",
    "stats_cb": "no callbacks in a spec",
    "oauth_cb": "no callbacks in a spec",
}
"""Property → what to do instead, or why not."""

SECRET_PARTS: Final = ("password", "secret", "pem", "sasl.jaas.config", "sasl.oauthbearer.config", "ssl.keystore.key")
"""Parts of property names whose values are secrets: they belong into a Secret, not into a spec."""


def check_properties(properties: Mapping[str, str], *, field: str) -> None:
    """Refuse reserved and secret properties by name.

    Raises:
        InvalidSpecError: names the property and what to do instead.
    """
    check_reserved(properties, field=field)
    for name in sorted(properties):
        if is_secret(name):
            raise InvalidSpecError(
                f"property {name} is a secret: put it into a Secret and name that in propertiesFrom", field=field
            )


def check_reserved(properties: Mapping[str, str], *, field: str) -> None:
    """Refuse reserved properties by name, wherever they come from.

    Raises:
        InvalidSpecError: names the property and what to do instead.
    """
    for name in sorted(properties):
        if (reason := RESERVED.get(name)) is not None:
            raise InvalidSpecError(f"property {name} is reserved: {reason}", field=field)


def is_secret(name: str) -> bool:
    """Whether the value of a property must not be seen by anybody."""
    return any(part in name for part in SECRET_PARTS)
