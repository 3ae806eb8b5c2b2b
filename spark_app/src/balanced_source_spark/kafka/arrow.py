"""The rows as Arrow: exactly what Spark makes of its schema, which it checks."""

from collections.abc import Mapping, Sequence
from typing import Final

import pyarrow as pa

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
"""All columns that rows can have, in the order of ``format("kafka")``, then `cluster`."""

PLAIN: Final = tuple(name for name in TYPES if name != "headers")
"""The columns that rows have unless something else is asked for."""


def arrow_schema(columns: Sequence[str] = PLAIN) -> pa.Schema:
    """Columns in the given order, as Spark checks them: all nullable, timestamps in microseconds UTC."""
    return pa.schema([pa.field(name, TYPES[name]) for name in columns])
