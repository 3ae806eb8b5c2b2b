"""Row groups of Parquet files, stripes of ORC files and blocks of Avro files in a range of bytes.

Row groups and stripes whose middle lies in it, and blocks whose sync marker begins in it.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import pyarrow as pa

from balanced_source.errors import text_of

ROWS: Final = 32 * 1024
"""Rows of one batch."""


def parquet(file: pa.NativeFile, start: int, end: int, schema: pa.Schema) -> Iterator[pa.Table]:
    """Return the rows of the row groups whose middle lies in the range."""
    import pyarrow.parquet as pq

    # Times of 96 bits, as Spark writes them, have more years than nanoseconds of 64 bits.
    with pq.ParquetFile(file, coerce_int96_timestamp_unit="us") as opened:
        groups = [
            n
            for n in range(opened.metadata.num_row_groups)
            # The middle lies in exactly one of any ranges, so each row group is read once.
            if start <= _middle(opened.metadata, n) < end
        ]
        known = set(opened.schema_arrow.names)
        wanted = [name for name in schema.names if name in known]
        if not groups:
            return
        if not wanted:
            # No wanted column is in the file, and its rows count all the same.
            yield from (_nulls(schema, opened.metadata.row_group(n).num_rows) for n in groups)
            return
        for batch in opened.iter_batches(
            batch_size=ROWS, row_groups=groups, columns=wanted, use_threads=False
        ):
            yield _fitted(pa.Table.from_batches([batch]), schema)


def orc(
    file: pa.NativeFile, start: int, end: int, size: int, schema: pa.Schema
) -> Iterator[pa.Table]:
    """Return the rows of the stripes of the range; the stripes of a file count as equally long."""
    from pyarrow import orc as library

    opened = library.ORCFile(file)
    known = set(opened.schema.names)
    wanted = [name for name in schema.names if name in known]
    for number in range(opened.nstripes):
        if not start <= number * size // opened.nstripes < end:
            continue
        stripe = opened.read_stripe(number, columns=wanted or [opened.schema.names[0]])
        if wanted:
            yield _fitted(pa.Table.from_batches([stripe]), schema)
        else:
            yield _nulls(schema, stripe.num_rows)


def avro(
    file: pa.NativeFile, start: int, end: int, size: int, schema: pa.Schema
) -> Iterator[pa.Table]:
    """Return the rows of the blocks whose sync marker begins in the range."""
    from balanced_source_adapters.files.avro import AvroFile

    opened = AvroFile(file, size)
    for field in opened.schema(schema.names):
        _check_units(field.name, field.type, schema.field(field.name).type)
    for found in opened.batches(start, end, schema.names):
        if isinstance(found, int):
            yield _nulls(schema, found)
        else:
            yield _fitted(pa.Table.from_batches([found]), schema)


def _check_units(name: str, found: pa.DataType, wanted: pa.DataType) -> None:
    """Check that no bare number becomes a time: Arrow would guess its unit.

    Raises:
        TypeError: one does.
    """
    is_time = pa.types.is_timestamp(wanted) or pa.types.is_time(wanted)
    if is_time and pa.types.is_integer(found):
        raise TypeError(
            f"column {name} has type {found}, which does not fit {wanted} of the schema: the file"
            " does not say the unit of the time"
        )
    inside = _members(found)
    for member, kind in _members(wanted).items():
        if member in inside:
            _check_units(f"{name}.{member}", inside[member], kind)


def _members(kind: pa.DataType) -> Mapping[str, pa.DataType]:
    """Return the types that a type is made of, by name."""
    if pa.types.is_struct(kind):
        return {field.name: field.type for field in kind}
    if pa.types.is_map(kind):
        return {"value": kind.item_type}
    return {"element": kind.value_type} if pa.types.is_list(kind) else {}


def _middle(metadata: Any, number: int) -> int:
    """Return the byte in the middle of a row group."""
    group = metadata.row_group(number)
    columns = [group.column(n) for n in range(group.num_columns)]
    # No column need be the first one in the file.
    begin = min(map(_begin, columns), default=0)
    return int(begin + sum(column.total_compressed_size for column in columns) // 2)


def _begin(column: Any) -> int:
    # The dictionary lies before the data, and is a part of the row group.
    if column.has_dictionary_page and column.dictionary_page_offset:
        return min(int(column.data_page_offset), int(column.dictionary_page_offset))
    return int(column.data_page_offset)


def _fitted(table: pa.Table, schema: pa.Schema) -> pa.Table:
    columns = []
    for field in schema:
        if field.name not in table.schema.names:
            columns.append(pa.nulls(table.num_rows, field.type))
            continue
        found = table.column(field.name)
        _check_units(field.name, found.type, field.type)
        try:
            columns.append(found if found.type == field.type else found.cast(field.type))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise TypeError(
                f"column {field.name} has type {found.type}, which does not fit {field.type} of the"
                f" schema: {text_of(error)}"
            ) from error
    return pa.Table.from_arrays(columns, schema=schema)


def _nulls(schema: pa.Schema, rows: int) -> pa.Table:
    if not schema.names:
        return pa.table({"": pa.nulls(rows)})
    return pa.table({f.name: pa.nulls(rows, f.type) for f in schema}, schema=schema)
