"""Versioned bytes (FLIP-27 ``SimpleVersionedSerializer``)."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from balanced_source.api.splits import Json
from balanced_source.errors import CorruptDocumentError, IncompatibleVersionError

T = TypeVar("T")


class VersionedSerializer(Protocol, Generic[T]):
    """Turns values into bytes that stay readable.

    `deserialize` reads every version that was ever released.
    """

    @property
    def version(self) -> int:
        """Version that `serialize` writes; grows by one with each change of the format."""
        ...

    def serialize(self, value: T) -> bytes:
        """Write `value` in the current version. The same value gives the same bytes."""
        ...

    def deserialize(self, version: int, data: bytes) -> T:
        """Read bytes written by `version`.

        Raises:
            IncompatibleVersionError: `version` is newer than this software.
            CorruptDocumentError: `data` is not what that version writes; trailing bytes count as
                corruption.
        """
        ...


@dataclass(frozen=True, slots=True)
class JsonSerializer(Generic[T]):
    """A `VersionedSerializer` on JSON.

    Attributes:
        what: name of the values, for messages.
        version: that `to_json` writes.
        to_json: value → JSON.
        from_json: version, JSON → value; a value that does not fit may raise anything.
    """

    what: str
    version: int
    to_json: Callable[[T], Json]
    from_json: Callable[[int, Json], T]

    def serialize(self, value: T) -> bytes:
        """See `VersionedSerializer`."""
        return json.dumps(self.to_json(value), separators=(",", ":"), sort_keys=True).encode()

    def deserialize(self, version: int, data: bytes) -> T:
        """See `VersionedSerializer`."""
        if version > self.version:
            raise IncompatibleVersionError(self.what, found=version, supported=self.version)
        try:
            return self.from_json(version, json.loads(data))
        except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
            raise CorruptDocumentError(
                f"{self.what}, version {version}, cannot be read: {error!r}"
            ) from error
