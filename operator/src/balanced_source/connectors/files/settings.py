"""What the readers of files must know besides their splits.

This module alone knows the keys. A key that an older version did not write has a default; unknown
keys are ignored.
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from balanced_source.api import Json
from balanced_source.connectors.reader_settings import needed_settings, settings_of

KIND: Final = "files"
"""Key of these settings among those of an assignment."""


class OnFileLoss(enum.StrEnum):
    """What happens when a file changed, vanished or came too late."""

    FAIL = "Fail"
    SKIP = "Skip"


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """Where files lie, and how it is reached.

    Attributes:
        endpoint: URL of an S3-compatible server; empty for AWS.
        region: of S3; empty for the client's default.
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
class FileReaderSettings:
    """How readers read.

    Attributes:
        store: where the files lie.
        scheme: ``s3://``, or empty for paths of a file system.
        on_loss: what happens when a file changed or vanished before it was read.
        schema: columns that were inferred from files, as DDL; empty if they were given.
    """

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

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Self:
        """Return the settings of files among all settings of an assignment.

        Raises:
            CorruptDocumentError: there are none, or they are malformed.
        """
        return needed_settings(settings, KIND, cls.from_json)

    @classmethod
    def found(cls, settings: Mapping[str, Any]) -> Self | None:
        """Return what `of` does; None while a driver has no assignment."""
        return settings_of(settings, KIND, cls.from_json)
