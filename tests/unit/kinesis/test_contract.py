"""The Kinesis source keeps the contracts of all sources."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from balanced_source.api import AsyncCall, SourceReaderContext, SplitId
from balanced_source.connectors.kinesis import KinesisSource, ShardSplit
from balanced_source.testing.enumerator import EnumeratorContract
from balanced_source.testing.inline_fetchers import InlineFetchers
from balanced_source.testing.serializer import SerializerContract, split_serializer
from balanced_source.testing.source_reader import SourceReaderContract
from balanced_source.testing.split_reader import SplitReaderContract
from balanced_source_adapters.kinesis.client import Record
from balanced_source_adapters.kinesis.reader import KinesisReader, ShardReader
from balanced_source_adapters.kinesis.shared import SharedShards
from support.shards import STREAM, NoPace, StreamInMemory

SOURCE = KinesisSource(streams=(STREAM,))


def written() -> StreamInMemory:
    """Three shards with some records each, which are closed."""
    stream = StreamInMemory(3)
    for number in range(60):
        stream.put(f"key-{number}")
    for name in stream.open():
        stream.split(name)
    return stream


CLOSED = tuple(f"shardId-{number:012}" for number in range(3))


def splits() -> list[ShardSplit]:
    return [ShardSplit(stream=STREAM, shard=name) for name in CLOSED]


def records(split: ShardSplit) -> list[Record]:
    return [r for r in written().shards[split.shard].records if r.sequence >= split.offset]


class NeverDue(SharedShards):
    """No shard may be read: a fetch waits."""

    def due(self, key: tuple[str, ...]) -> float:
        return math.inf


class TestShardReader(SplitReaderContract):
    shared: SharedShards | None = None

    def make_reader(self) -> ShardReader:
        return ShardReader(written(), shared=self.shared or NoPace())

    def unread(self) -> ShardSplit:
        self.shared = NeverDue()
        return splits()[0]

    def splits(self) -> Sequence[ShardSplit]:
        return splits()

    def elements(self, split: Any) -> Sequence[Record]:
        return records(split)

    def later(self, split: Any) -> ShardSplit:
        found: ShardSplit = split.at(records(split)[0].sequence + 1)
        return found


class TestKinesisReader(SourceReaderContract):
    def make_reader(self, context: SourceReaderContext) -> KinesisReader:
        make: Callable[[], ShardReader] = lambda: ShardReader(written(), shared=NoPace())  # noqa: E731
        return KinesisReader(context, InlineFetchers(make))

    def splits(self) -> Sequence[ShardSplit]:
        return splits()

    def records(self, split: Any) -> Sequence[Record]:
        return records(split)


class TestEnumerator(EnumeratorContract):
    def source(self) -> KinesisSource:
        return SOURCE

    def split_ids(self) -> frozenset[SplitId]:
        return frozenset((STREAM, name) for name in StreamInMemory(5).shards)

    def execute(self, call: AsyncCall) -> Any:
        return StreamInMemory(5).execute(call)


class TestSerializer(SerializerContract):
    serializer = split_serializer(SOURCE)
    values: Sequence[ShardSplit] = (
        ShardSplit(stream=STREAM, shard="shardId-000000000001", offset=7, created="1", stop=9),
        ShardSplit(stream=STREAM, shard="shardId-000000000001", time=1000),
        ShardSplit(stream=STREAM, shard="shardId-000000000001", sequence=10**100),
    )
    released = {
        1: {
            b'[["orders","shardId-000000000001"],7,{"id":"1","stop":9}]': ShardSplit(
                stream=STREAM, shard="shardId-000000000001", offset=7, created="1", stop=9
            )
        }
    }
