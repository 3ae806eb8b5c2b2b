"""What the readers of Kinesis streams must know besides their splits.

This module alone knows the keys. Unknown keys are ignored.
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from balanced_source.api import Json
from balanced_source.connectors.reader_settings import needed_settings, settings_of

KIND: Final = "kinesis"
"""Key of these settings among those of an assignment."""


class OnShardLoss(enum.StrEnum):
    """What happens when records are gone before they were read."""

    FAIL = "Fail"
    CONTINUE = "Continue"


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """How Kinesis is reached.

    Attributes:
        endpoint: URL; empty for AWS.
        region: empty for that of the ARN, or else the client's default.
        secret: name of the Secret with `accessKeyId` and `secretAccessKey`; None: the standard
            chain of the process.
    """

    endpoint: str = ""
    region: str = ""
    secret: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the JSON value for readers; nothing secret."""
        return {"endpoint": self.endpoint, "region": self.region, "secret": self.secret}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Inverse of `to_json`."""
        secret = data["secret"]
        return cls(
            endpoint=str(data["endpoint"]),
            region=str(data["region"]),
            secret=None if secret is None else str(secret),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardReaderSettings:
    """How readers read.

    Attributes:
        server: how Kinesis is reached.
        on_loss: what happens when records are gone before they were read.
    """

    server: Server = Server()
    on_loss: OnShardLoss = OnShardLoss.FAIL

    def to_json(self) -> dict[str, Json]:
        """Return the JSON value of the settings: members of the server, and the policy."""
        return {**self.server.to_json(), "onLoss": self.on_loss.value}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Inverse of `to_json`, also for what older versions wrote."""
        return cls(server=Server.from_json(data), on_loss=OnShardLoss(data["onLoss"]))

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Self:
        """Return the settings of Kinesis among all settings of an assignment.

        Raises:
            CorruptDocumentError: there are none, or they are malformed.
        """
        return needed_settings(settings, KIND, cls.from_json)

    @classmethod
    def found(cls, settings: Mapping[str, Any]) -> Self | None:
        """Return what `of` does; None while a driver has no assignment."""
        return settings_of(settings, KIND, cls.from_json)
