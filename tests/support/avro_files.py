"""Avro files for tests, as bytes."""

import io
import json
from collections.abc import Sequence
from typing import Any

import fastavro

from balanced_source_adapters.files import avro

ID = {"name": "id", "type": "long"}
ROW = {"type": "record", "name": "row", "fields": [ID, {"name": "text", "type": "string"}]}


def written(
    records: Sequence[Any],
    schema: Any = ROW,
    *,
    codec: str = "null",
    block: int = 16000,
    **more: Any,
) -> bytes:
    file = io.BytesIO()
    fastavro.writer(file, schema, records, codec, sync_interval=block, **more)
    return file.getvalue()


def headed(schema: Any, records: Sequence[Any], plain: Any) -> bytes:
    """Return a file whose header has a schema that fastavro does not write, above other blocks."""
    mark, header = b"0123456789abcdef", io.BytesIO()
    meta = {"avro.schema": json.dumps(schema).encode()}
    parts = {"magic": b"Obj\x01", "meta": meta, "sync": mark}
    fastavro.schemaless_writer(header, avro._HEADER, parts)
    bare = len(written([], plain, sync_marker=mark))
    return header.getvalue() + written(records, plain, sync_marker=mark)[bare:]


def record(*fields: Any) -> dict[str, Any]:
    return {"type": "record", "name": "row", "fields": list(fields)}
