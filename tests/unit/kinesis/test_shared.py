"""What tasks of a process share of the shards that they read."""

from typing import Any

import pytest

from balanced_source_adapters.kinesis import shared as shared_shards
from balanced_source_adapters.kinesis.shared import SharedShards


def test_a_process_remembers_only_the_shards_that_it_read_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Shards come and go for as long as an executor lives."""
    monkeypatch.setattr(shared_shards, "SHARDS", 2)
    shared = SharedShards()
    keys: list[Any] = ["first", "second", "third"]
    for key in keys:
        shared.keep(key, 7, f"iterator of {key}", 1000.0)

    assert [shared.iterator(key, 7, 1000.0) for key in reversed(keys)] == [
        "iterator of third",
        "iterator of second",
        None,
    ]
