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
    "client.id": (
        "made from source, cluster and reader, so that broker logs and quotas tell who it is"
    ),
    "topic.blacklist": "set spec.source.kafka.subscription",
    "plugin.library.paths": "would load code into readers and operator",
    "ssl.engine.location": "would load code into readers and operator",
    "ssl.engine.id": "would load code into readers and operator",
    "ssl.providers": "would load code into readers and operator",
    "sasl.kerberos.kinit.cmd": "would run a command in readers and operator",
    "error_cb": "no callbacks in a spec",
    "stats_cb": "no callbacks in a spec",
    "oauth_cb": "no callbacks in a spec",
}
"""Property → what to do instead, or why not."""

_FILE: Final = (
    "it names a file of the operator's pod; put the content into a Secret and name that in"
    " propertiesFrom"
)

LENDING: Final[Mapping[str, str]] = {
    "ssl.key.location": f"{_FILE}, as ssl.key.pem",
    "ssl.certificate.location": f"{_FILE}, as ssl.certificate.pem",
    "ssl.crl.location": "it names a file of the operator's pod",
    "ssl.keystore.location": f"{_FILE}, as ssl.key.pem and ssl.certificate.pem",
    "sasl.kerberos.principal": "it would be a part of a command that the operator's pod runs",
    "sasl.kerberos.keytab": (
        "it names a file of the operator's pod, whose identity is not the source's"
    ),
    "sasl.oauthbearer.assertion.file": (
        "it would send a file of the operator's pod to the token endpoint"
    ),
    "sasl.oauthbearer.assertion.private.key.file": (
        f"{_FILE}, as sasl.oauthbearer.assertion.private.key.pem"
    ),
    "sasl.oauthbearer.assertion.jwt.template.file": (
        "it would send a file of the operator's pod to the token endpoint"
    ),
    "sasl.oauthbearer.metadata.authentication.type": (
        "it would log in with the identity of the operator's node"
    ),
}
"""Properties that use files or the identity of the process they are in.

The operator is not the source: refused in every spec and Secret that the operator reads. A driver
without an operator is the user's own, so it may use them.
"""

ASKED_SERVER: Final = "sasl.oauthbearer.token.endpoint.url"
"""Property that names a server which clients ask over HTTP."""

AUTHORITIES: Final[Mapping[str, str]] = {
    "ssl.ca.location": "ssl.ca.pem",
    "https.ca.location": "https.ca.pem",
}
"""Property that names a file of certificates of authorities → the one that holds its content."""

PUBLIC: Final = (
    "/etc/ssl/",
    "/etc/pki/",
    "/usr/share/ca-certificates/",
    "/usr/local/share/ca-certificates/",
)
"""Folders with certificates of authorities.

Elsewhere, a file may be secret, or a pipe: the client waits for one while it holds the
interpreter's lock, so that no source is served.
"""

PROBE: Final = "probe"
"""Value with which the client library looks for the certificates of the system."""

SECRET_PARTS: Final = (
    "password",
    "passphrase",
    "secret",
    "pem",
    "sasl.jaas.config",
    "sasl.oauthbearer.config",
    "ssl.keystore.key",
)
"""Parts of property names whose values are secrets: they belong in a Secret, not into a spec."""


def check_properties(properties: Mapping[str, str], *, field: str) -> None:
    """Refuse reserved and secret properties by name.

    Raises:
        InvalidSpecError: names the property and what to do instead.
    """
    check_reserved(properties, field=field)
    for name in sorted(properties):
        if is_secret(name):
            raise InvalidSpecError(
                f"property {name} is a secret: put it into a Secret and name that in"
                " propertiesFrom",
                field=field,
            )


def check_reserved(properties: Mapping[str, str], *, field: str) -> None:
    """Refuse reserved properties by name, wherever they come from.

    Raises:
        InvalidSpecError: names the property and what to do instead.
    """
    for name in sorted(properties):
        if (reason := RESERVED.get(name)) is not None:
            raise InvalidSpecError(f"property {name} is reserved: {reason}", field=field)


def check_not_lending(properties: Mapping[str, str], *, field: str) -> None:
    """Rejects properties that would use files or the identity of the operator's pod.

    Raises:
        InvalidSpecError: names the property and what to do instead.
    """
    for name in sorted(properties):
        if (reason := LENDING.get(name)) is not None:
            raise InvalidSpecError(f"property {name} is not allowed here: {reason}", field=field)
        if name in AUTHORITIES and not _is_public(properties[name]):
            raise InvalidSpecError(
                f"property {name} is not allowed here: it names a file of the operator's pod that"
                f" is not below {', '.join(PUBLIC)}. Put the certificates into a Secret, as"
                f" {AUTHORITIES[name]}, and name that in propertiesFrom",
                field=field,
            )


def _is_public(path: str) -> bool:
    return path == PROBE or (path.startswith(PUBLIC) and ".." not in path.split("/"))


def is_secret(name: str) -> bool:
    """Whether the value of a property must not be seen by anybody."""
    return any(part in name for part in SECRET_PARTS)
