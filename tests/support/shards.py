"""A stream in memory: shards with hash keys, records, splits, merges, retention.

Its answers are those of Kinesis.
"""

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from balanced_source.api import AsyncCall, SourceReader, SourceReaderContext, SplitId
from balanced_source.connectors.discovery import Alarm
from balanced_source.connectors.kinesis import (
    FirstPositions,
    KinesisSource,
    ListShards,
    Shard,
    ShardSplit,
    discovered,
    first_splits,
)
from balanced_source.testing.inline_fetchers import InlineFetchers
from balanced_source_adapters.kinesis.client import (
    BadPositionError,
    Batch,
    IteratorExpiredError,
    NotFoundError,
    Record,
    Summary,
)
from balanced_source_adapters.kinesis.reader import KinesisReader, ShardReader
from balanced_source_adapters.kinesis.shared import SharedShards

STREAM = "orders"
WIDTH = 1 << 16
"""Hash keys."""
FIRST_NUMBER = 49_680_476_398_063_177_477_575_283_530_759_859_222_540_217_101_381_009_408
"""Sequence numbers are as long as real ones."""


@dataclass
class StoredShard:
    """A shard: hash keys from `low` up to but without `high`."""

    low: int
    high: int
    parents: tuple[str, ...] = ()
    is_open: bool = True
    trimmed: int = 0
    records: list[Record] = field(default_factory=list)


class StreamInMemory:
    """See the module. It is the client of its readers, too.

    Args:
        shards: how many it has first.
        page: records of one answer.

    Attributes:
        shards: by id, those that are listed.
        created: identity of the stream.
        sent: all records: key and number.
        now: milliseconds since the epoch.
        retention: see `Summary`; `age` makes records expire.
        before: called before each answer to a reader; it may raise what a server would.
        refuses_positions: whether the records that were read last are unknown to the server.
    """

    def __init__(self, shards: int = 1, *, page: int = 3) -> None:
        self.shards: dict[str, StoredShard] = {}
        self.created, self.now, self._page, self._made, self._number = (
            "1",
            1_000_000,
            page,
            0,
            FIRST_NUMBER,
        )
        self.retention: int | None = None
        self.sent: list[tuple[str, int]] = []
        self.before: Callable[[str], None] = lambda _: None
        self.refuses_positions = False
        self.calls = 0
        for number in range(shards):
            self._add(WIDTH * number // shards, WIDTH * (number + 1) // shards)

    # --- what happens to it -----------------------------------------------------------------------

    def put(self, key: str) -> None:
        """Send the next record of a key."""
        place = zlib.crc32(key.encode()) % WIDTH
        name = next(n for n, s in self.shards.items() if s.is_open and s.low <= place < s.high)
        self._number += 97
        self.now += 10
        number = len(self.sent)
        record = Record(STREAM, name, self._number, key, str(number).encode(), self.now * 1000)
        self.shards[name].records.append(record)
        self.sent.append((key, number))

    def open(self) -> list[str]:
        """Open shards, by their hash keys."""
        return sorted(
            (n for n, s in self.shards.items() if s.is_open), key=lambda n: self.shards[n].low
        )

    def split(self, name: str) -> None:
        """Split a shard in the middle, if it is wide enough."""
        shard = self.shards[name]
        middle = (shard.low + shard.high) // 2
        if shard.is_open and shard.low < middle:
            shard.is_open = False
            self._add(shard.low, middle, name)
            self._add(middle, shard.high, name)

    def merge(self, one: str, other: str) -> None:
        """Merge two neighbours."""
        low, high = self.shards[one], self.shards[other]
        assert low.high == high.low
        low.is_open = high.is_open = False
        self._add(low.low, high.high, one, other)

    def expire(self, name: str) -> None:
        """A closed shard is not retained any more."""
        assert not self.shards.pop(name).is_open

    def age(self, millis: int) -> None:
        """Time passes, and records that are older than the retention expire."""
        self.now += millis
        for shard in self.shards.values():
            oldest = (self.now - (self.retention or self.now)) * 1000
            shard.trimmed = sum(record.arrived < oldest for record in shard.records)

    def trim(self, name: str, count: int) -> None:
        """The oldest records of a shard are not retained any more."""
        self.shards[name].trimmed += count

    def recreate(self, shards: int = 1) -> None:
        """The stream was deleted, and created again: ids of shards begin anew."""
        self.shards, self._made, self.created = {}, 0, str(int(self.created) + 1)
        for number in range(shards):
            self._add(WIDTH * number // shards, WIDTH * (number + 1) // shards)

    def _add(self, low: int, high: int, *parents: str) -> None:
        self.shards[f"shardId-{self._made:012}"] = StoredShard(low, high, parents)
        self._made += 1

    # --- the enumerator's calls -------------------------------------------------------------------

    def listed(self, stream: str = STREAM) -> dict[SplitId, Shard]:
        """The answer of ``ListShards``, for the stream as it is named."""
        return {
            (stream, n): Shard(tuple((stream, p) for p in s.parents), s.is_open)
            for n, s in self.shards.items()
        }

    def execute(self, call: AsyncCall) -> Any:
        """Answer a call."""
        match call:
            case ListShards():
                return discovered(self.listed(call.scope), created=self.created)
            case FirstPositions():
                return first_splits(
                    call, created=self.created, now=self.now, retention=self.retention
                )
            case Alarm():
                return None
        raise TypeError(call)

    # --- the readers' client ----------------------------------------------------------------------

    def summary(self, stream: str) -> Summary:
        """See `KinesisClient`."""
        return Summary(self.created, self.now, self.retention)

    def iterator(self, split: ShardSplit) -> str:
        """See `KinesisClient`."""
        self.before("iterator")
        if self.refuses_positions and split.offset:
            raise BadPositionError("no such record", scope=STREAM)
        if (shard := self.shards.get(split.shard)) is None:
            raise NotFoundError(f"{split.shard} was not found", scope=STREAM)
        number = split.offset - 1 if split.offset else split.sequence
        kept = shard.records[shard.trimmed :]
        if (
            number is not None
            and all(record.sequence < number for record in kept)
            and number != FIRST_NUMBER
        ):
            known = [record.sequence for record in shard.records]
            if number not in known:
                raise BadPositionError(f"{split.shard} has no {number}", scope=STREAM)
        first = (
            next(
                (i for i, r in enumerate(shard.records) if r.sequence >= number), len(shard.records)
            )
            if number is not None
            else next(
                (i for i, r in enumerate(shard.records) if r.arrived >= (split.time or 0) * 1000),
                len(shard.records),
            )
        )
        return f"{split.shard} {max(first, shard.trimmed)} {self.created}"

    def records(self, stream: str, shard: str, iterator: str, limit: int) -> Batch:
        """See `KinesisClient`."""
        self.before("records")
        self.calls += 1
        name, index, created = iterator.split()
        if created != self.created or name not in self.shards:
            raise IteratorExpiredError("another stream", scope=STREAM)
        known, begin = self.shards[name], max(int(index), self.shards[name].trimmed)
        found = known.records[begin : begin + min(self._page, limit)]
        left = known.records[begin + len(found) :]
        following = (
            f"{name} {begin + len(found)} {created}" if known.is_open or left or found else None
        )
        return Batch(
            tuple(found),
            following,
            (left[-1].arrived - found[-1].arrived) // 1000 if left else 0,
            self.now,
        )


class NoPace(SharedShards):
    """Shards may be read at any time, in turn."""

    def __init__(self) -> None:
        super().__init__()
        self._turns: dict[tuple[str, ...], int] = {}

    def take(self, key: tuple[str, ...], now: float) -> bool:
        self._turns[key] = max(self._turns.values(), default=0) + 1
        return True

    def due(self, key: tuple[str, ...]) -> float:
        return self._turns.get(key, 0) * 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadableSource(KinesisSource):
    """A source whose readers read a stream in memory."""

    stream: StreamInMemory = field(compare=False)
    shared: SharedShards = field(default_factory=NoPace, compare=False)

    def create_reader(self, context: SourceReaderContext) -> SourceReader[Record, ShardSplit]:
        return KinesisReader(
            context,
            InlineFetchers(
                lambda: ShardReader(self.stream, shared=self.shared, on_loss=self.on_loss)
            ),
        )


def numbers(records: list[Record]) -> Mapping[str, list[int]]:
    """Numbers by key, in the order of delivery."""
    found: dict[str, list[int]] = {}
    for record in records:
        found.setdefault(record.key, []).append(int(record.data))
    return found
