"""Options ``kafka.…``: properties of the client, as librdkafka or Java clients call them."""

from collections.abc import Mapping
from typing import Final

from balanced_source.connectors.kafka import is_brokers, is_secret, translated
from balanced_source.connectors.kafka.properties import RESERVED
from balanced_source.errors import InvalidSpecError
from balanced_source.names import shown
from balanced_source_spark.contract.option_table import rejected

PREFIX: Final = "kafka."
BOOTSTRAP: Final = "kafka.bootstrap.servers"

_INSTEAD: Final[Mapping[str, str]] = {
    "metadata.broker.list": f"set {BOOTSTRAP}",
    "group.id": "readers join no consumer group: leave it out. For tools that watch lag, set commitGroup",
    "partition.assignment.strategy": "set strategy",
    "auto.offset.reset": "set startingOffsets",
    "topic.blacklist": "set subscribe or subscribePattern",
    "max.poll.records": "set maxOffsetsPerTrigger",
    "plugin.library.paths": "it would load code into the driver and the tasks",
}
"""Properties that a query may not set, and what to set: where the custom resource calls it otherwise."""


def client_properties(options: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of the client in librdkafka's words.

    Raises:
        InvalidSpecError: names the option and what to set instead; never a value.
    """
    given = {k.removeprefix(PREFIX): v for k, v in options.items() if k.startswith(PREFIX) and k != BOOTSTRAP}
    for name in sorted(given):
        _check(name)
    return _translated(given)


def bootstrap_servers(options: Mapping[str, str]) -> str:
    """Return the addresses of the brokers.

    Raises:
        InvalidSpecError: there are none, or one has another form than ``host:port``.
    """
    servers = options.get(BOOTSTRAP)
    if servers is None:
        raise InvalidSpecError(
            f"set {BOOTSTRAP} to read by this driver alone, source to read what an operator assigns, or assignmentDir "
            "to read what local mode assigns",
            field="options",
        )
    if not is_brokers(servers):
        raise rejected(BOOTSTRAP, f"expected host:port, separated by commas, not {shown(servers)}")
    return servers


def _check(name: str) -> None:
    if reason := _INSTEAD.get(name) or RESERVED.get(name):
        raise rejected(f"{PREFIX}{name}", f"cannot be set: {reason}")
    if is_secret(name):
        raise rejected(f"{PREFIX}{name}", "put it into a folder and name that with secretsDir")


def _translated(given: Mapping[str, str]) -> dict[str, str]:
    """One by one, so that an error names the option."""
    result: dict[str, str] = {}
    for name, value in given.items():
        result |= translated({name: value}, field=f"option {PREFIX}{name}")
    return result
