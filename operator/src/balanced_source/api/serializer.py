"""Versioned bytes (FLIP-27 ``SimpleVersionedSerializer``)."""

from typing import Generic, Protocol, TypeVar

T = TypeVar("T")


class VersionedSerializer(Protocol, Generic[T]):
    """Turns values into bytes that stay readable: `deserialize` reads every version that was ever released."""

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
            CorruptDocumentError: `data` is not what that version writes; trailing bytes count as corruption.
        """
        ...
