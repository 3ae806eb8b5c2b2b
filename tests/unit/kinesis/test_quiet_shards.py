"""Shards without new records, read by processes that do not know each other."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from balanced_source.api import SourceReader, SourceReaderContext, SplitId
from balanced_source.connectors.kinesis import OnShardLoss, ShardSplit
from balanced_source.documents import stream_offset
from balanced_source.documents.journal import JournalPoint, decode, encode
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.errors import RefusedDiscoveryError
from balanced_source.host.journaling import delivered, next_end, shares
from balanced_source.testing.inline_fetchers import InlineFetchers
from balanced_source_adapters.kinesis.client import Record
from balanced_source_adapters.kinesis.fetches import Fetches
from balanced_source_adapters.kinesis.reader import KinesisReader, ShardReader
from balanced_source_spark.contract.half import Query
from balanced_source_spark.journal.reading import Reading
from balanced_source_spark.kinesis.half import KinesisSparkHalf
from support.shards import STREAM, NoPace, StreamInMemory

SHARD: SplitId = (STREAM, "shardId-000000000000")
POLLS = 3
"""Polls of a task: enough for two records."""
HOUR = 3_600_000
SIX_HOURS = 6 * HOUR
DAY = 24 * HOUR


class HalfInMemory(KinesisSparkHalf):
    """Reads a stream in memory; each task is in a process of its own."""

    def __init__(self, stream: StreamInMemory, on_loss: OnShardLoss) -> None:
        self.stream, self.on_loss = stream, on_loss

    def reader(
        self, query: Query[None], settings: Mapping[str, Any], context: SourceReaderContext
    ) -> SourceReader[Record, ShardSplit]:
        fetches = Fetches()

        def make_reader() -> ShardReader:
            clock = lambda: self.stream.now / 1000  # noqa: E731
            return ShardReader(
                self.stream, on_loss=self.on_loss, shared=NoPace(), fetches=fetches, clock=clock
            )

        return KinesisReader(context, InlineFetchers(make_reader), fetches)


def first_offset(stream: StreamInMemory) -> StreamOffset:
    split = ShardSplit(stream=STREAM, shard=SHARD[1], created="1", found=stream.now)
    return StreamOffset(
        epoch=1,
        parallelism=1,
        readers=(0,),
        owners={SHARD: 0},
        positions={SHARD: 0},
        attributes={SHARD: split.attributes()},
    )


@dataclass
class Readers:
    """Micro-batches of a query that is restarted before each one."""

    on_loss: OnShardLoss = OnShardLoss.FAIL
    stream: StreamInMemory = field(default_factory=StreamInMemory)
    found: list[int] = field(default_factory=list)
    gaps: list[Mapping[SplitId, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.stream.retention = DAY
        self.offset = first_offset(self.stream)
        self.number = 0

    def read(self) -> list[int]:
        """Plan a micro-batch, read it in a process that knows nothing, and fold it."""
        self.number += 1
        point = JournalPoint(journal="j", number=self.number)
        # As Spark stores it.
        end = stream_offset.from_json(stream_offset.to_json(next_end(self.offset, point)))
        (share,) = shares(end)
        half = HalfInMemory(self.stream, self.on_loss)
        with Reading(half, Query(client_id="c", read=None), {}, share, {}) as reading:
            for _ in range(POLLS):
                reading.poll()
            record = reading.record(has_more=False)
            for batch in reading.buffer.batches():
                self.found.extend(map(int, batch.column("data").to_pylist()))
        record = decode(encode(record, source="s"), source="s", key=record.key)
        self.offset = delivered(end, [record])
        self.gaps.append(record.gaps)
        return self.found

    def idle(self, millis: int) -> None:
        """Time passes while the shard is read every six hours."""
        for _ in range(millis // SIX_HOURS):
            self.stream.age(SIX_HOURS)
            self.read()

    def miss_a_record(self) -> None:
        """A record comes and expires while no query runs, and then another one comes."""
        self.stream.put("key")
        self.stream.age(DAY + HOUR)
        self.stream.put("key")

    @property
    def noted(self) -> Mapping[SplitId, int]:
        assert self.offset.journal is not None
        return self.offset.journal.read_up_to


@pytest.mark.scenario("P6")
@pytest.mark.parametrize("records", [0, 1])
@pytest.mark.parametrize("retention", [DAY, 7 * DAY])
def test_a_shard_that_is_quiet_for_longer_than_the_retention(records: int, retention: int) -> None:
    """Its next record is read: no record can be missing before it."""
    readers = Readers()
    readers.stream.retention = retention
    for _ in range(records):
        readers.stream.put("key")
    readers.read()

    readers.idle(retention + 2 * DAY)
    readers.stream.age(DAY - 2 * HOUR)  # and then no query runs
    readers.stream.put("key")

    assert readers.read() == list(range(records + 1))
    assert readers.noted == {}, "behind another position records may be missing"


@pytest.mark.parametrize("records", [0, 1])
def test_a_quiet_shard_that_no_one_reads_for_longer_than_the_retention(records: int) -> None:
    """Records may have come and expired."""
    readers = Readers()
    for _ in range(records):
        readers.stream.put("key")
    readers.read()
    readers.idle(3 * DAY)
    readers.miss_a_record()

    with pytest.raises(RefusedDiscoveryError, match="may have expired unread"):
        readers.read()


def test_a_retention_that_was_lengthened_too_late_proves_nothing() -> None:
    """The records expired under the shorter one."""
    readers = Readers()
    readers.stream.put("key")
    readers.read()
    readers.idle(3 * DAY)
    readers.miss_a_record()
    readers.stream.retention = 7 * DAY

    with pytest.raises(RefusedDiscoveryError, match="may have expired unread"):
        readers.read()


def test_a_loss_is_not_forgotten_while_the_shard_has_no_record() -> None:
    """That nothing is there now does not say that nothing was."""
    readers = Readers()
    readers.stream.put("key")
    readers.read()
    readers.stream.put("key")
    readers.stream.age(2 * DAY)
    readers.idle(2 * DAY)

    assert not readers.noted or max(readers.noted.values()) < readers.stream.now - 3 * DAY
    readers.stream.put("key")
    with pytest.raises(RefusedDiscoveryError, match="which was read last"):
        readers.read()


def test_only_what_is_news_is_stored() -> None:
    readers = Readers()
    readers.stream.put("key")
    readers.read()
    assert readers.noted == {}, "it has moved"
    readers.read()
    first = dict(readers.noted)
    readers.stream.age(60_000)
    readers.read()
    assert readers.noted == first
    readers.stream.age(600_000)
    readers.read()
    assert readers.noted[SHARD] > first[SHARD]


def test_a_split_that_starts_again_has_no_note() -> None:
    split = ShardSplit(stream=STREAM, shard=SHARD[1], offset=5, read_up_to=7)

    assert split.at(5) == split
    assert split.at(6) == replace(split, offset=6, read_up_to=None)
    assert split.from_its_oldest().read_up_to is None


def test_a_gap_that_was_skipped_is_sealed_with_the_first_record_behind_it() -> None:
    readers = Readers(on_loss=OnShardLoss.CONTINUE)
    readers.stream.put("key")
    readers.read()
    readers.stream.put("key")
    readers.stream.age(2 * DAY)
    readers.read()
    readers.stream.put("key")

    assert readers.read() == [0, 2]
    readers.stream.put("key")
    assert readers.read() == [0, 2, 3]
    assert readers.gaps == [{}, {}, {SHARD: 1}, {}]


def test_a_gap_is_sealed_although_nothing_is_behind_it_yet() -> None:
    """To the next reader the shard looks quiet."""
    readers = Readers(on_loss=OnShardLoss.CONTINUE)
    readers.stream.put("key")
    readers.read()
    readers.stream.age(2 * DAY)
    readers.stream.refuses_positions = True
    assert readers.read() == [0]
    readers.stream.put("key")

    assert readers.read() == [0, 1]
    assert readers.gaps == [{}, {SHARD: 1}, {}]
