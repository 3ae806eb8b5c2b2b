"""From librdkafka's messages to Arrow columns, in bulk."""

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from operator import methodcaller
from typing import Any, Final

import pyarrow as pa
from confluent_kafka import Message

from balanced_source_spark.kafka.arrow import arrow_schema

_KEY: Final = methodcaller("key")
_VALUE: Final = methodcaller("value")
_TOPIC: Final = methodcaller("topic")
_PARTITION: Final = methodcaller("partition")
_OFFSET: Final = methodcaller("offset")
_TIMESTAMP: Final = methodcaller("timestamp")
_HEADERS: Final = methodcaller("headers")

_MICROS_PER_MILLI: Final = 1000


@contextmanager
def collector_paused() -> Iterator[None]:
    """Python's cyclic collector off while many short-lived objects are made: none of them is in a cycle."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def record_batch(messages: Sequence[Message], *, cluster: str, include_headers: bool) -> pa.RecordBatch:
    """The messages as rows of the source's schema."""
    types, stamps = zip(*map(_TIMESTAMP, messages), strict=True) if messages else ((), ())
    columns = [
        pa.array(map(_KEY, messages), pa.binary(), size=len(messages)),
        pa.array(map(_VALUE, messages), pa.binary(), size=len(messages)),
        pa.array(map(_TOPIC, messages), pa.string(), size=len(messages)),
        pa.array(map(_PARTITION, messages), pa.int32(), size=len(messages)),
        pa.array(map(_OFFSET, messages), pa.int64(), size=len(messages)),
        _timestamps(stamps),
        _timestamp_types(types),
    ]
    if include_headers:
        columns.append(pa.array([_headers(m) for m in messages], _header_type()))
    columns.append(pa.repeat(pa.scalar(cluster, pa.string()), len(messages)))
    return pa.RecordBatch.from_arrays(columns, schema=arrow_schema(include_headers=include_headers))


def _timestamps(millis: Sequence[int]) -> pa.Array:
    # Like Spark: a record without a timestamp has −1 ms.
    return pa.array((ms * _MICROS_PER_MILLI for ms in millis), pa.int64(), size=len(millis)).cast(
        pa.timestamp("us", tz="UTC")
    )


def _timestamp_types(types: Sequence[int]) -> pa.Array:
    # librdkafka counts 0 none, 1 created, 2 appended; Spark −1, 0, 1.
    return pa.array((kind - 1 for kind in types), pa.int32(), size=len(types))


def _headers(message: Message) -> list[dict[str, Any]] | None:
    headers = _HEADERS(message)
    return [{"key": key, "value": value} for key, value in headers] if headers else None


def _header_type() -> pa.DataType:
    return arrow_schema(include_headers=True).field("headers").type
