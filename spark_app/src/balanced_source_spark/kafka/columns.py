"""From librdkafka's messages to Arrow columns, in bulk."""

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import pyarrow as pa
from confluent_kafka import Message
from pyarrow import compute

from balanced_source_spark.kafka.chunk import Chunk
from balanced_source_spark.kafka.names import PLAIN
from balanced_source_spark.kafka.settings import NO_TEXT, UnreadableHeadersError

_MICROS_PER_MILLI: Final = 1000

_Maker = Callable[[Chunk], pa.Array]

_HEADER: Final = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])

TYPES: Final[Mapping[str, pa.DataType]] = {
    "key": pa.binary(),
    "value": pa.binary(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestampType": pa.int32(),
    "headers": pa.list_(pa.field("element", _HEADER)),
    "cluster": pa.string(),
}
"""Of all columns that rows can have, see `names.COLUMNS`."""


def arrow_schema(columns: Sequence[str] = PLAIN) -> pa.Schema:
    """Columns in the given order, exactly as Spark checks them.

    All nullable, timestamps in microseconds UTC.
    """
    return pa.schema([pa.field(name, TYPES[name]) for name in columns])


@contextmanager
def collector_paused() -> Iterator[None]:
    """Python's cyclic collector off while many short-lived objects are made.

    None of them is in a cycle.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def record_batch(chunk: Chunk, *, cluster: str, columns: Sequence[str] = PLAIN) -> pa.RecordBatch:
    """The messages as rows with these columns; nothing is made of what is not asked for."""
    made = [
        pa.repeat(pa.scalar(cluster, pa.string()), len(chunk))
        if name == "cluster"
        else _MAKERS[name](chunk)
        for name in columns
    ]
    return pa.RecordBatch.from_arrays(made, schema=arrow_schema(columns))


def _timestamps(chunk: Chunk) -> pa.Array:
    """Like Spark: a record without a timestamp has −1 ms."""
    return compute.multiply(chunk.millis, _MICROS_PER_MILLI).cast(TYPES["timestamp"])


def _timestamp_types(chunk: Chunk) -> pa.Array:
    """Librdkafka counts 0 none, 1 created, 2 appended; Spark −1, 0, 1."""
    return compute.subtract(chunk.time_kinds, 1).cast(TYPES["timestampType"])


def _bytes(accessor: Callable[[Message], Any]) -> _Maker:
    return lambda chunk: pa.array(chunk.each(accessor), pa.binary())


def _headers(chunk: Chunk) -> pa.Array:
    found: list[Any] = []
    try:
        found.extend(map(Message.headers, chunk.messages))
    except NO_TEXT as error:
        # The message itself does not raise again: it has given its headers away.
        raise UnreadableHeadersError(_unreadable(chunk.messages[len(found)])) from error
    return pa.array(
        [
            [{"key": key, "value": value} for key, value in headers] if headers else None
            for headers in found
        ],
        TYPES["headers"],
    )


def _unreadable(bad: Message) -> str:
    return (
        f"topic {bad.topic()}, partition {bad.partition()}, offset {bad.offset()}: the key of a"
        " header is not UTF-8, which Kafka's Python client cannot read. Use the native reader"
        " (option reader), which replaces the invalid bytes, or leave out the column headers"
    )


_MAKERS: Final[Mapping[str, _Maker]] = {
    "key": _bytes(Message.key),
    "value": _bytes(Message.value),
    "topic": lambda chunk: chunk.topics,
    "partition": lambda chunk: chunk.partitions,
    "offset": lambda chunk: chunk.offsets,
    "timestamp": _timestamps,
    "timestampType": _timestamp_types,
    "headers": _headers,
}
