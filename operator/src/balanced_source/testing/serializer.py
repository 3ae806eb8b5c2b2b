"""What every `VersionedSerializer` must do, and the serializers of a source.

The product stores splits and states in documents, by `Source.create_split`, `encode_state` and
`decode_state`. The serializers (FLIP-27 ``SimpleVersionedSerializer``) show that what these write
stays readable.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import pytest

from balanced_source.api import Json, Source, SourceSplit
from balanced_source.api.enumerator import split_to_json
from balanced_source.errors import CorruptDocumentError, IncompatibleVersionError

SplitT = TypeVar("SplitT", bound=SourceSplit)
StateT = TypeVar("StateT")
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


def split_serializer(source: Source[SplitT, Any]) -> VersionedSerializer[SplitT]:
    """Return what writes splits as `Source.create_split` reads them."""

    def from_json(_: int, data: Any) -> SplitT:
        split_id, position, attributes = data
        return source.create_split(tuple(split_id), position, attributes)

    return JsonSerializer("split", 1, split_to_json, from_json)


def state_serializer(source: Source[Any, StateT]) -> VersionedSerializer[StateT]:
    """Return what writes enumerator state by `Source.encode_state` and `decode_state`."""
    return JsonSerializer(
        "state of the enumerator", source.state_version, source.encode_state, source.decode_state
    )


class SerializerContract:
    """Derive, set the attributes, and name the class ``Test…``.

    Attributes:
        serializer: under test.
        values: some of its values, the odd ones among them.
        released: version → bytes → the value that they mean; one entry at least for every version
            ever released.
    """

    serializer: VersionedSerializer[Any]
    values: Sequence[Any]
    released: Mapping[int, Mapping[bytes, Any]]

    def test_what_was_written_is_read(self) -> None:
        for value in self.values:
            written = self.serializer.serialize(value)
            assert self.serializer.deserialize(self.serializer.version, written) == value

    def test_the_same_value_gives_the_same_bytes(self) -> None:
        for value in self.values:
            again = self.serializer.deserialize(
                self.serializer.version, self.serializer.serialize(value)
            )
            assert self.serializer.serialize(again) == self.serializer.serialize(value)

    def test_every_released_version_stays_readable(self) -> None:
        assert set(self.released) == set(range(1, self.serializer.version + 1)), (
            "a version without golden bytes"
        )
        for version, golden in self.released.items():
            for data, value in golden.items():
                assert self.serializer.deserialize(version, data) == value

    def test_the_present_version_is_the_golden_one(self) -> None:
        """Who changes what is written gives it a new version."""
        for data, value in self.released[self.serializer.version].items():
            assert self.serializer.serialize(value) == data

    def test_newer_bytes_are_refused_by_name(self) -> None:
        newer = self.serializer.version + 1
        with pytest.raises(IncompatibleVersionError, match=f"version {newer}"):
            self.serializer.deserialize(newer, self.serializer.serialize(self.values[0]))

    @pytest.mark.parametrize("damage", ["cut", "trailing", "empty", "garbage", "text"])
    def test_damage_is_told(self, damage: str) -> None:
        good = self.serializer.serialize(self.values[0])
        damaged = {
            "cut": good[: len(good) // 2],
            "trailing": good + b"x",
            "empty": b"",
            "garbage": b"\xff\xfe\x00",
            "text": b'"hello"',
        }[damage]
        with pytest.raises(CorruptDocumentError):
            self.serializer.deserialize(self.serializer.version, damaged)
