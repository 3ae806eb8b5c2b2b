"""Every half whose tasks get readers keeps the contract.

Kinesis, the sample connector, and tapes of the tests.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any, Final

import pytest
from balanced_source_httplog.source import HttpLogSource, Server
from balanced_source_httplog.spark_half import HttpLogSparkHalf

from balanced_source.api import STOP, Json, Position, SourceReader, SourceReaderContext, SplitId
from balanced_source.connectors.kinesis import KinesisSource, ShardSplit
from balanced_source.reader import Threading
from balanced_source.testing.inline_fetchers import InlineFetchers
from balanced_source.testing.readers_half import ReadersHalfContract, Row, _names
from balanced_source_adapters.fetchers import ThreadedFetchers
from balanced_source_adapters.kinesis.client import Record
from balanced_source_adapters.kinesis.reader import KinesisReader, ShardReader
from balanced_source_spark.contract.half import Query
from balanced_source_spark.kinesis.half import KinesisSparkHalf
from support.bursts import BurstHalf
from support.log_api import LogApi
from support.reused_records import ReusedHalf
from support.shards import STREAM, NoPace, StreamInMemory
from support.tapes import (
    SHELF,
    ForgetfulHalf,
    Shelf,
    TapeEmitter,
    TapeHalf,
    TapeReader,
    TapeSourceReader,
    TapeSplit,
)
from support.tapes import Record as TapeRecord

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
QUERY: Query[None] = Query(client_id="contract", read=None)


class KinesisInMemory(KinesisSparkHalf):
    """Kinesis with a stream in memory as its service, and without pauses between two requests."""

    def reader(
        self, query: Query[None], settings: Mapping[str, Any], context: SourceReaderContext
    ) -> SourceReader[Record, ShardSplit]:
        return KinesisReader(
            context, InlineFetchers(lambda: ShardReader(written(), shared=NoPace()))
        )


def written() -> StreamInMemory:
    """Three shards with some records each.

    One of them is closed: it ends behind its last record.
    """
    stream = StreamInMemory(3)
    for number in range(30):
        stream.put(f"key-{number}")
    stream.split(stream.open()[0])
    return stream


class TestKinesis(ReadersHalfContract):
    has_ending_splits = True

    def half(self) -> KinesisInMemory:
        return KinesisInMemory()

    def query(self) -> Query[None]:
        return QUERY

    def settings(self) -> Mapping[str, Any]:
        return KinesisSource(streams=(STREAM,)).reader_settings()

    def splits(self) -> Mapping[SplitId, Mapping[str, Json]]:
        return {
            (STREAM, name): ShardSplit(stream=STREAM, shard=name).attributes()
            for name, shard in written().shards.items()
            if shard.records
        }

    def rows(self, split_id: SplitId) -> Sequence[Row]:
        return [
            {
                "data": record.data,
                "partitionKey": record.key,
                "sequenceNumber": str(record.sequence),
                "shardId": record.shard,
                "stream": STREAM,
                "approximateArrivalTimestamp": EPOCH + timedelta(microseconds=record.arrived),
            }
            for record in written().shards[str(split_id[1])].records
        ]


class TestSampleConnector(ReadersHalfContract):
    api: LogApi

    @pytest.fixture(autouse=True)
    def _served(self) -> Iterator[None]:
        with LogApi() as api:
            type(self).api = api
            api.append("orders", 7)
            api.append("a/b c", 3)
            yield

    def half(self) -> HttpLogSparkHalf:
        return HttpLogSparkHalf()

    def query(self) -> Query[None]:
        return QUERY

    def settings(self) -> Mapping[str, Any]:
        return HttpLogSource(server=Server(url=self.api.url)).reader_settings()

    def splits(self) -> Mapping[SplitId, Mapping[str, Json]]:
        return {("server", name): {} for name in self.api.logs}

    def rows(self, split_id: SplitId) -> Sequence[Row]:
        name = str(split_id[1])
        return [
            {"log": name, "number": n, "text": text} for n, text in enumerate(self.api.logs[name])
        ]


class TestTapes(ReadersHalfContract):
    honours_stops = True
    has_ending_splits = True

    def half(self) -> TapeHalf:
        shelf = Shelf(lengths={"a": 9, "b": 4}, ends={"b": 4}, timed={"a"})
        return TapeHalf(shelf, honours_stops=self.honours_stops, knows_ends=not self.honours_stops)

    def query(self) -> Query[None]:
        return QUERY

    def settings(self) -> Mapping[str, Any]:
        return {"tapes": {}}

    def splits(self) -> Mapping[SplitId, Mapping[str, Json]]:
        return {(SHELF, "a"): {}, (SHELF, "b"): {}}

    def first(self, split_id: SplitId) -> Position:
        return 0

    def rows(self, split_id: SplitId) -> Sequence[Row]:
        return [
            {"tape": str(split_id[1]), "number": n}
            for n in range({"a": 9, "b": 4}[str(split_id[1])])
        ]


class TestTapesWithoutStops(TestTapes):
    honours_stops = False


class Bursts(TestTapes):
    """A reader that emits several records in a poll, and returns lists."""

    size: int
    says_end = True

    def half(self) -> BurstHalf:
        shelf = Shelf(lengths={"a": 9, "b": 4}, ends={"b": 4})
        return BurstHalf(shelf, size=self.size, says_end=self.says_end, knows_ends=True)

    def rows(self, split_id: SplitId) -> Sequence[Row]:
        return tuple(MappingProxyType(row) for row in super().rows(split_id))


class TestBurstsOfTwo(Bursts):
    size = 2


class TestBurstsOfThree(Bursts):
    size = 3


class TestEverythingAtOnce(Bursts):
    size = 100


class TestForgetsBoundedSplits(Bursts):
    """It does not say where a split ends: at its stop, which is known."""

    size = 3
    says_end = False

    def splits(self) -> Mapping[SplitId, Mapping[str, Json]]:
        return {(SHELF, "a"): {STOP: 9}, (SHELF, "b"): {STOP: 4}}


class ThreadedTapes(TapeHalf):
    """The reader library as a connector uses it: split readers in threads."""

    def __init__(self, shape: Threading) -> None:
        super().__init__(Shelf(lengths={"a": 9, "b": 4}, ends={"a": 9, "b": 4}))
        self.shape = shape

    def reader(
        self, query: Query[None], settings: Mapping[str, Any], context: SourceReaderContext
    ) -> SourceReader[TapeRecord, TapeSplit]:
        fetchers = ThreadedFetchers(
            lambda: TapeReader(self.shelf), self.shape, notify=context.notify_available
        )
        reader = TapeSourceReader(context, fetchers, TapeEmitter(self.repeats, self.shelf.time_of))
        reader.shelf = self.shelf
        return reader


class ThreadedContract(TestTapes):
    shape: Threading

    def half(self) -> ThreadedTapes:
        return ThreadedTapes(self.shape)


class TestOneSplitAfterAnother(ThreadedContract):
    shape = Threading.ONE_AFTER_ANOTHER


class TestOneSplitReaderForAllSplits(ThreadedContract):
    shape = Threading.ONE_READER


class TestOneSplitReaderPerSplit(ThreadedContract):
    shape = Threading.ONE_PER_SPLIT


class TestMutableRecords(TestTapes):
    """Its emitter changes one record again and again."""

    def half(self) -> ReusedHalf:
        return ReusedHalf(Shelf(lengths={"a": 9, "b": 4}, ends={"b": 4}))


class TestRecycledBuffers(TestTapes):
    """Its records are views of buffers that `recycle` frees."""

    def half(self) -> ReusedHalf:
        return ReusedHalf(Shelf(lengths={"a": 9, "b": 4}, ends={"b": 4}), has_views=True)


class Repeating(TapeHalf):
    """Gives two records for each element, so the first of them does not move its split."""

    def __init__(self) -> None:
        super().__init__(Shelf(lengths={"a": 9, "b": 4}), repeats=2)


class Stuck(TapeHalf):
    """Turns an element into another number of rows."""

    def rows(self, records: Sequence[Any]) -> Any:
        return super().rows([*records, *records])


class Early(TapeHalf):
    """Says that a split ends before its last record."""

    def __init__(self) -> None:
        super().__init__(Shelf(lengths={"a": 9, "b": 4}), knows_ends=True)

    def hooks(self, context: Any) -> Any:
        self.shelf.lengths["a"] = 8
        return super().hooks(context)


class RepeatingBursts(BurstHalf):
    """Gives each record twice."""

    def reader(self, *args: Any) -> Any:
        made = super().reader(*args)
        emit = made._emit
        made._emit = lambda split_id, output, limit: emit(split_id, Twice(output), limit)
        return made


class Twice:
    """An output that gets each record twice."""

    def __init__(self, output: Any) -> None:
        self._output = output

    def create_output_for_split(self, split_id: SplitId) -> "Twice":
        return Twice(self._output.create_output_for_split(split_id))

    def collect(self, record: Any) -> None:
        self._output.collect(record)
        self._output.collect(record)


class Silent(TapeHalf):
    """Says of no split where it is."""

    def reader(self, *args: Any) -> Any:
        made = super().reader(*args)
        made.snapshot_state = lambda _: ()
        return made


class GivesUp(TapeHalf):
    """Ends a split that has a stop before it is there."""

    def __init__(self) -> None:
        super().__init__(Shelf(lengths={"a": 9, "b": 4}, gives_up=1))


class Ending(TapeHalf):
    """Ends a split of a source whose splits do not end."""

    def __init__(self) -> None:
        super().__init__(Shelf(lengths={"a": 9, "b": 4}, ends={"b": 4}))


class AtItsTip(TapeHalf):
    """Says from the start that it is 0 behind."""

    def reader(self, *args: Any) -> Any:
        made = super().reader(*args)
        made.millis_behind = lambda: {(SHELF, "a"): 0, (SHELF, "b"): 0}  # type: ignore[method-assign]
        return made


@pytest.mark.parametrize(
    ("half", "test"),
    [
        (Repeating(), "test_positions_are_numbers_that_grow_behind_each_record"),
        (Stuck(Shelf(lengths={"a": 9, "b": 4})), "test_every_record_is_a_row_in_its_order"),
        (TapeHalf(Shelf(lengths={"a": 8, "b": 4})), "test_every_record_is_a_row_in_its_order"),
        (Early(), "test_the_end_of_a_split_is_behind_its_last_record"),
        (GivesUp(), "test_a_sealed_range_is_read_again_record_by_record"),
        (
            RepeatingBursts(Shelf(lengths={"a": 9, "b": 4})),
            "test_positions_are_numbers_that_grow_behind_each_record",
        ),
        (
            Silent(Shelf(lengths={"a": 9, "b": 4})),
            "test_positions_are_numbers_that_grow_behind_each_record",
        ),
        (
            BurstHalf(Shelf(lengths={"a": 9, "b": 4}, ends={"b": 4}), says_end=False),
            "test_a_split_that_ends_before_its_stop_says_where",
        ),
        (Ending(), "test_a_split_ends_only_if_splits_of_the_source_end"),
        (
            ForgetfulHalf(Shelf(lengths={"a": 9, "b": 4})),
            "test_a_split_ends_only_if_splits_of_the_source_end",
        ),
        (
            AtItsTip(Shelf(lengths={"a": 9, "b": 4})),
            "test_it_is_not_at_its_tip_while_records_are_left",
        ),
    ],
)
def test_the_suite_finds_a_half_that_does_not_keep_the_contract(
    monkeypatch: pytest.MonkeyPatch, half: TapeHalf, test: str
) -> None:
    monkeypatch.setattr("balanced_source.testing.readers_half.DEADLINE", 0.05)
    suite = TestTapes()
    suite.has_ending_splits = test != "test_a_split_ends_only_if_splits_of_the_source_end"
    monkeypatch.setattr(suite, "half", lambda: half)

    with pytest.raises(AssertionError):
        getattr(suite, test)()


@pytest.mark.parametrize(
    ("ddl", "names"),
    [
        ("number BIGINT, text STRING", ["number", "text"]),
        ("`a` DECIMAL(10, 2), b STRUCT<x: INT, y: MAP<STRING, INT>>, c INT", ["a", "b", "c"]),
    ],
)
def test_the_suite_reads_the_names_of_columns(ddl: str, names: list[str]) -> None:
    assert _names(ddl) == names
