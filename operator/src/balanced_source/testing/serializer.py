"""What every `VersionedSerializer` must do."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from balanced_source.api import VersionedSerializer
from balanced_source.errors import CorruptDocumentError, IncompatibleVersionError


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
