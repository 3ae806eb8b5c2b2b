"""The rows as Arrow: exactly what Spark makes of its schema, which it checks."""

import pyarrow as pa


def arrow_schema(*, include_headers: bool) -> pa.Schema:
    """The same as Arrow, exactly as Spark checks it: all nullable, timestamps in microseconds UTC."""
    fields = [
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("timestamp", pa.timestamp("us", tz="UTC")),
        pa.field("timestampType", pa.int32()),
    ]
    if include_headers:
        header = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
        fields.append(pa.field("headers", pa.list_(pa.field("element", header))))
    return pa.schema([*fields, pa.field("cluster", pa.string())])
