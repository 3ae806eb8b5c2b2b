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


SKIPPED_BLOCKS: Final = "skippedBlocks"
"""Number in the report: blocks of files that planning has left out, see `OnFileLoss.SKIP`."""


class OnFileLoss(enum.StrEnum):
    """What happens when a file changed, vanished or came too late."""

    FAIL = "Fail"
    SKIP = "Skip"


@dataclass(frozen=True, slots=True, kw_only=True)
class Store(AwsAccess):
    """How the store is reached in which files lie. The paths say of which kind it is.

    Attributes:
        account: of Azure; empty elsewhere.
    """

    account: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the JSON value for readers; an account only where there is one."""
        account = {"account": self.account} if self.account else {}
        return {**AwsAccess.to_json(self), **account}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Inverse of `to_json`, also for what older versions wrote."""
        access = AwsAccess.from_json(data)
        return cls(
            endpoint=access.endpoint,
            region=access.region,
            secret=access.secret,
            account=str(data.get("account", "")),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FileReaderSettings(ReaderSettings):
    """How readers read.

    Attributes:
        store: where the files lie.
        scheme: ``s3://``, ``gs://``, ``az://``, or ``hdfs://`` with the name node; empty for local
            files.
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
