"""What the readers of files must know besides their splits.

This module alone knows the keys. A key that an older version did not write has a default; unknown
keys are ignored.
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Self

from balanced_source.api import Json
from balanced_source.connectors.aws_access import AwsAccess
from balanced_source.connectors.reader_settings import ReaderSettings

KIND: Final = "files"
"""Key of these settings among those of an assignment."""


class OnFileLoss(enum.StrEnum):
    """What happens when a file changed, vanished or came too late."""

    FAIL = "Fail"
    SKIP = "Skip"


@dataclass(frozen=True, slots=True, kw_only=True)
class Store(AwsAccess):
    """Where files lie, and how it is reached: for S3 and stores with its interface."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileReaderSettings(ReaderSettings):
    """How readers read.

    Attributes:
        store: where the files lie.
        scheme: ``s3://``, or empty for paths of a file system.
        on_loss: what happens when a file changed or vanished before it was read.
        schema: columns that were inferred from files, as DDL; empty if they were given.
    """

    kind: ClassVar[str] = KIND

    store: Store = Store()
    scheme: str = ""
    on_loss: OnFileLoss = OnFileLoss.FAIL
    schema: str = ""

    def to_json(self) -> dict[str, Json]:
        """Return the JSON value of the settings; columns only if they were inferred."""
        return {
            "store": self.store.to_json(),
            "scheme": self.scheme,
            "onLoss": self.on_loss.value,
            **({"schema": self.schema} if self.schema else {}),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Inverse of `to_json`, also for what older versions wrote."""
        return cls(
            store=Store.from_json(data["store"]),
            scheme=str(data["scheme"]),
            on_loss=OnFileLoss(data["onLoss"]),
            schema=str(data.get("schema", "")),
        )
