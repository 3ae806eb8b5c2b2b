"""What the readers of Kinesis streams must know besides their splits.

This module alone knows the keys. Unknown keys are ignored.
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Self

from balanced_source.api import Json
from balanced_source.connectors.aws_access import AwsAccess
from balanced_source.connectors.reader_settings import ReaderSettings

KIND: Final = "kinesis"
"""Key of these settings among those of an assignment."""


class OnShardLoss(enum.StrEnum):
    """What happens when records are gone before they were read."""

    FAIL = "Fail"
    CONTINUE = "Continue"


@dataclass(frozen=True, slots=True, kw_only=True)
class Server(AwsAccess):
    """How Kinesis is reached; without a region, by that of the ARN if there is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardReaderSettings(ReaderSettings):
    """How readers read.

    Attributes:
        server: how Kinesis is reached.
        on_loss: what happens when records are gone before they were read.
        arns: name of a stream → its ARN, where the user gives ARNs. Splits may have the name.
    """

    kind: ClassVar[str] = KIND

    server: Server = Server()
    on_loss: OnShardLoss = OnShardLoss.FAIL
    arns: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Json]:
        """Return the JSON value of the settings: members of the server, policy, and ARNs."""
        known: dict[str, Json] = {"arns": dict(self.arns)} if self.arns else {}
        return {**self.server.to_json(), "onLoss": self.on_loss.value, **known}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Inverse of `to_json`, also for what older versions wrote."""
        return cls(
            server=Server.from_json(data),
            on_loss=OnShardLoss(data["onLoss"]),
            arns={str(name): str(arn) for name, arn in data.get("arns", {}).items()},
        )
