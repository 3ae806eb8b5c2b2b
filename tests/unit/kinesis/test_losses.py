"""What the user is told of shards that were not read to their end."""

import pytest

from balanced_source.connectors.kinesis.source import KinesisSource
from balanced_source.connectors.kinesis.split import ShardSplit


@pytest.mark.parametrize(
    ("exists", "why"),
    [
        (True, "the stream was deleted and created again"),
        (False, "the stream does not retain the rest any more, or was deleted"),
    ],
)
def test_unread_shards_are_told_per_stream_with_the_reason(exists: bool, why: str) -> None:
    source = KinesisSource.__new__(KinesisSource)
    shards = [ShardSplit(stream=stream, shard=shard) for stream, shard in (("b", "1"), ("a", "2"))]

    told = source.unread(shards, exists=exists)

    assert [text.split(":")[0] for text in told] == ["stream a", "stream b"]
    assert all(f": 1 shard not read to the end, and {why}: " in text for text in told)
