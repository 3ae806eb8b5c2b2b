"""The rows as Arrow: exactly what Spark makes of its schema, which it checks."""

from collections.abc import Mapping, Sequence
from typing import Final

import pyarrow as pa

from balanced_source_spark.kafka.names import PLAIN

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
    """Columns in the given order, as Spark checks them.

    All nullable, timestamps in microseconds UTC.
    """
    return pa.schema([pa.field(name, TYPES[name]) for name in columns])
