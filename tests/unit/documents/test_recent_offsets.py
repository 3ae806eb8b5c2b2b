"""An offset that was decoded lately is not decoded again."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from balanced_source.documents import recent_offsets, stream_offset
from balanced_source.documents.recent_offsets import KEPT, RecentOffsets
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.errors import CorruptDocumentError

A = ("c", "t", 0)


def offset(position: int) -> StreamOffset:
    return StreamOffset(
        epoch=1, parallelism=1, readers=(0,), owners={A: 0}, positions={A: position}
    )


def as_spark_passes_it(position: int) -> dict[str, Any]:
    """Parsed from text each time, so never the same object twice."""
    parsed: dict[str, Any] = json.loads(json.dumps(stream_offset.to_json(offset(position))))
    return parsed


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[Mapping[str, Any]]:
    """What was decoded, in order."""
    seen: list[Mapping[str, Any]] = []
    from_json = stream_offset.from_json

    def counting(data: Mapping[str, Any]) -> StreamOffset:
        seen.append(data)
        return from_json(data)

    monkeypatch.setattr(recent_offsets.stream_offset, "from_json", counting)
    return seen


def test_equal_texts_are_decoded_once(decoded: list[Mapping[str, Any]]) -> None:
    offsets = RecentOffsets()

    for _ in range(3):
        assert offsets.decoded(as_spark_passes_it(5)) == offset(5)
        assert offsets.decoded(as_spark_passes_it(6)) == offset(6)

    assert len(decoded) == 2


def test_only_the_newest_offsets_are_kept(decoded: list[Mapping[str, Any]]) -> None:
    offsets = RecentOffsets()

    for position in range(KEPT + 1):
        offsets.decoded(as_spark_passes_it(position))
    offsets.decoded(as_spark_passes_it(0))

    assert len(decoded) == KEPT + 2


def test_a_wrong_offset_is_refused_each_time() -> None:
    offsets = RecentOffsets()

    for _ in range(2):
        with pytest.raises(CorruptDocumentError):
            offsets.decoded({"version": 1})
