"""Row groups of Parquet files, stripes of ORC files and blocks of Avro files in a range of bytes.

Row groups and stripes whose middle lies in it, and blocks whose sync marker begins in it.
"""

from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa

from balanced_source.errors import text_of
from balanced_source_adapters.files.column_types import check_fits, misfit, stored

ROWS: Final = 32 * 1024
"""Rows of one batch."""


def parquet(file: pa.NativeFile, start: int, end: int, schema: pa.Schema) -> Iterator[pa.Table]:
    """Return the rows of the row groups whose middle lies in the range."""
    import pyarrow.parquet as pq

    # Times of 96 bits, as Spark writes them, have more years than nanoseconds of 64 bits.
    with pq.ParquetFile(file, coerce_int96_timestamp_unit="us") as opened:
        _check_columns(opened.schema_arrow, schema)
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
    _check_columns(opened.schema, schema)
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
    _check_columns(opened.schema(schema.names), schema)
    for found in opened.batches(start, end, schema.names):
        if isinstance(found, int):
            yield _nulls(schema, found)
        else:
            yield _fitted(pa.Table.from_batches([found]), schema)


def _check_columns(found: pa.Schema, schema: pa.Schema) -> None:
    """Check that the columns of a file fit the schema, before any row is read.

    Raises:
        TypeError: one does not. Names it and both types.
    """
    wanted = {field.name: field.type for field in schema}
    for field in found:
        if field.name in wanted:
            check_fits(field.name, field.type, wanted[field.name])


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
        found = stored(table.column(field.name))
        try:
            columns.append(found if found.type == field.type else found.cast(field.type))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise TypeError(
                f"{misfit(field.name, found.type, field.type)}: {text_of(error)}"
            ) from error
    return pa.Table.from_arrays(columns, schema=schema)


def _nulls(schema: pa.Schema, rows: int) -> pa.Table:
    if not schema.names:
        return pa.table({"": pa.nulls(rows)})
    return pa.table({f.name: pa.nulls(rows, f.type) for f in schema}, schema=schema)
