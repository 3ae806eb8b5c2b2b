"""From a cluster in the spec to a librdkafka configuration."""

import re
from collections.abc import Mapping
from typing import Any, Final

from balanced_source.api import SecretReader
from balanced_source.connectors.kafka import KafkaCluster, check_reserved, is_secret, translated
from balanced_source_adapters.kafka.tokens import TokenCallback, provider_of, token_provider

SESSION_TIMEOUTS: Final[Mapping[str, Any]] = {
    "socket.timeout.ms": 10_000,
    "socket.connection.setup.timeout.ms": 5_000,
    "socket.keepalive.enable": True,
    "reconnect.backoff.ms": 100,
    # Connection troubles are in our own errors and conditions; librdkafka would repeat them several
    # times a second.
    "log_level": 2,
    "reconnect.backoff.max.ms": 2_000,
}
"""Shorter than librdkafka's defaults, so that a dead broker is noticed in seconds; users may
override them."""

TOKENS: Final = "oauth_cb"
"""Property of the Python client for the function that returns tokens."""

_SHORT: Final = 3
_QUOTED: Final = re.compile(r'Invalid value ".*" for', re.DOTALL)


class NoSecrets:
    """For clusters that name none."""

    def read(self, name: str) -> Mapping[str, str]:
        """See `SecretReader`."""
        raise LookupError(f"secret {name}: no place to read secrets from was configured")


def client_config(
    cluster: KafkaCluster, secrets: SecretReader, *, client_id: str
) -> dict[str, Any]:
    """Configuration of any client of the cluster. Holds secrets: never log it, never store it.

    Raises:
        LookupError: a Secret is not there.
        InvalidSpecError: a Secret holds what it must not, or what librdkafka does not know; never
            says a value.
    """
    config: dict[str, Any] = {**SESSION_TIMEOUTS, **cluster.properties}
    for name in cluster.secrets:
        found = secrets.read(name)
        check_reserved(found, field=f"Secret {name}")
        config.update(translated(found, field=f"Secret {name}"))
    if provider := token_provider(secrets):
        provider_of(provider)
        config[TOKENS] = TokenCallback(provider)
    # Last: a Secret must not send the credentials of a cluster to other brokers.
    return {**config, "bootstrap.servers": cluster.bootstrap_servers, "client.id": client_id}


def without_secrets(text: str, config: Mapping[str, Any]) -> str:
    """A text of librdkafka (which quotes values that it does not like) that people may see."""
    values = {str(value) for name, value in config.items() if is_secret(name)}
    user = str(config.get("sasl.username", ""))
    if len(user) > _SHORT:  # the text would be unreadable without every "a"
        values.add(user)
    for value in sorted(values, key=len, reverse=True):
        if value:
            text = text.replace(value, "***")
    # A secret in the wrong place: the name of its property does not tell.
    return _QUOTED.sub("Invalid value for", text)
