"""Options ``kafka.…``: properties of the client, as librdkafka or Java clients call them."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from balanced_source.connectors.kafka import is_brokers, is_secret, translated
from balanced_source.connectors.kafka.properties import RESERVED
from balanced_source.errors import InvalidSpecError
from balanced_source.names import shown
from balanced_source_spark.contract.half import secrets_in
from balanced_source_spark.contract.option_table import rejected
from balanced_source_spark.contract.secrets import (
    GIVEN,
    WHOLE_FOLDER,
    QuerySecrets,
    has_reference,
    resolved,
)

PREFIX: Final = "kafka."
BOOTSTRAP: Final = "kafka.bootstrap.servers"

REDACTED: Final = "(?i)url|jaas|pem|keystore|certificate|oauthbearer.config"
"""A value of ``spark.sql.redaction.options.regex`` that covers all secrets."""

_REDACTED_BY_SPARK: Final = re.compile("(?i)secret|password|token|access[.]?key")
"""Spark's default for names of options whose values it does not show."""

_INSTEAD: Final[Mapping[str, str]] = {
    "metadata.broker.list": f"set {BOOTSTRAP}",
    "group.id": (
        "readers join no consumer group: leave it out. For tools that watch lag, set commitGroup"
    ),
    "partition.assignment.strategy": "set strategy",
    "auto.offset.reset": "set startingOffsets",
    "topic.blacklist": "set subscribe or subscribePattern",
    "max.poll.records": "set maxOffsetsPerTrigger",
    "oauth_cb": "set tokenProvider",
    "plugin.library.paths": "it would load code into the driver and the tasks",
}
"""Properties that a query may not set, and what to set: where the custom resource calls it
otherwise."""


def client_properties(options: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of the client that everybody may see, in librdkafka's words.

    Raises:
        InvalidSpecError: names the option and what to set instead; never a value.
    """
    found = _translated(
        {name: value for name, value in _given(options).items() if not _is_hidden(name, value)}
    )
    return {"sasl.mechanism": "OAUTHBEARER", **found} if "tokenprovider" in options else found


def query_secrets(options: Mapping[str, str]) -> QuerySecrets:
    """Return the secret properties, in librdkafka's words, and the files with more of them.

    Raises:
        InvalidSpecError: names the option, never a value.
    """
    hidden = {name: value for name, value in _given(options).items() if _is_hidden(name, value)}
    values = {name: resolved(f"{PREFIX}{name}", value) for name, value in hidden.items()}
    given = tuple(sorted(_translated(values).items()))
    return replace(
        secrets_in(options), given=given, token_provider=options.get("tokenprovider", "")
    )


def secret_names(options: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names under which a cluster finds its secrets; later ones win."""
    hidden = any(_is_hidden(name, value) for name, value in _given(options).items())
    return (WHOLE_FOLDER,) * ("secretsdir" in options) + (GIVEN,) * hidden


def shown_by_spark(options: Mapping[str, str]) -> tuple[str, ...]:
    """Return a sentence about each secret that Spark itself shows.

    `explain` does, unless the name says "password".
    """
    given = {
        name: value
        for name, value in _given(options).items()
        if is_secret(name) and not has_reference(value)
    }
    return tuple(
        f"option {PREFIX}{name} is a secret that Spark shows in explain(): write it as"
        " ${env:NAME}, put it into a file of secretsDir, or set"
        f" spark.sql.redaction.options.regex to {REDACTED}"
        for name in sorted(given)
        if _REDACTED_BY_SPARK.search(name) is None
    )


def bootstrap_servers(options: Mapping[str, str]) -> str:
    """Return the addresses of the brokers.

    Raises:
        InvalidSpecError: there are none, or one has another form than ``host:port``.
    """
    servers = options.get(BOOTSTRAP)
    if servers is None:
        raise InvalidSpecError(
            f"set {BOOTSTRAP} to read by this driver alone, source to read what an operator"
            " assigns, or assignmentDir to read what local mode assigns"
            f"{_other_connectors(options)}",
            field="options",
        )
    if not is_brokers(servers):
        raise rejected(BOOTSTRAP, f"expected host:port, separated by commas, not {shown(servers)}")
    return servers


def _other_connectors(options: Mapping[str, str]) -> str:
    """Return what to do for a source of another kind, unless the user has named this one."""
    if "connector" in options:
        return ""
    return ". To read anything else than Kafka, set the option connector, such as files or kinesis"


def _given(options: Mapping[str, str]) -> dict[str, str]:
    given = {
        k.removeprefix(PREFIX): v
        for k, v in options.items()
        if k.startswith(PREFIX) and k != BOOTSTRAP
    }
    for name in sorted(given):
        if reason := _INSTEAD.get(name) or RESERVED.get(name):
            raise rejected(f"{PREFIX}{name}", f"cannot be set: {reason}")
    return given


def _is_hidden(name: str, value: str) -> bool:
    return is_secret(name) or has_reference(value)


def _translated(given: Mapping[str, str]) -> dict[str, str]:
    """One by one, so that an error names the option."""
    result: dict[str, str] = {}
    for name, value in given.items():
        result |= translated({name: value}, field=f"option {PREFIX}{name}")
    return result
