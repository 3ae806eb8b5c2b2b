"""The ConfigMap of clustersFrom is read again every few seconds, and no more often."""

from types import SimpleNamespace
from typing import Any

import pytest

from balanced_source_operator.runtime import metadata
from balanced_source_operator.runtime.metadata import MetadataReader
from balanced_source_operator.spec import BalancedSourceSpec
from support.builders import make_spec


class Api:
    """Counts; only `get` is asked."""

    def __init__(self, found: Any) -> None:
        self.found = found
        self.asked = 0

    async def get(self, _kind: Any, _namespace: str, _name: str) -> Any:
        self.asked += 1
        return self.found


def spec(name: str = "streams") -> BalancedSourceSpec:
    reference = {"configMapRef": {"name": name}}
    return make_spec(
        source={"kafka": {"clustersFrom": reference, "subscription": {"streams": ["s"]}}}
    )


async def text(reader: MetadataReader, spec: BalancedSourceSpec) -> str | None:
    ((_, found),) = (await reader.read(spec)).items()
    return found


async def test_changes_are_seen_after_the_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(metadata, "time", SimpleNamespace(monotonic=lambda: now[0]))
    api: Any = Api({"data": {"clusters.yaml": "one"}})
    reader = MetadataReader(api, "default")

    assert [await text(reader, spec()) for _ in range(3)] == ["one"] * 3
    assert api.asked == 1
    api.found = {"data": {"clusters.yaml": "two"}}
    now[0] += metadata.INTERVAL
    assert await text(reader, spec()) == "two"
    api.found = None
    assert await text(reader, spec("another")) is None, "another ConfigMap is read at once"


async def test_a_missing_key_is_none_and_a_spec_without_references_reads_nothing() -> None:
    api: Any = Api({"data": {"other": "x"}})
    reader = MetadataReader(api, "default")

    assert await reader.read(make_spec()) == {}
    assert api.asked == 0
    assert await text(reader, spec()) is None
    assert (MetadataReader.pause(spec()), MetadataReader.pause(make_spec())) == (
        metadata.INTERVAL,
        None,
    )
