"""What tasks of a process share of the shards that they read."""

from typing import Any

import pytest

from balanced_source.connectors.kinesis import ShardSplit
from balanced_source_adapters.kinesis import shared as shared_shards
from balanced_source_adapters.kinesis.fetches import FetchedUpTo, Fetches
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


def test_a_turn_at_a_shard_is_taken_once() -> None:
    shared, key = SharedShards(), ("server", "stream", "shard")
    assert shared.take(key, 100.0) is True
    assert shared.take(key, 100.0) is False
    assert shared.take(key, shared.due(key)) is True


def test_how_far_a_shard_is_behind_is_known_only_as_long_as_the_service_says_it() -> None:
    fetches = Fetches()
    split = ShardSplit(stream="stream", shard="shard", offset=7)
    fetches.note(split, None, 3)
    assert fetches.newest == {split.split_id: FetchedUpTo(7, None, 3)}
    fetches.note(split, None, None)
    assert fetches.newest == {}
    fetches.note(split, None, None)
