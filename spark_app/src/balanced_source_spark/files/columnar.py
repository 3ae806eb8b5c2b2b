"""Row groups of Parquet files, stripes of ORC files and blocks of Avro files in a range of bytes.

Row groups and stripes whose middle lies in it, and blocks whose sync marker begins in it.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from balanced_source.errors import text_of
from balanced_source_adapters.files import calendars
from balanced_source_adapters.files.calendars import OldCalendar
from balanced_source_adapters.files.column_types import (
    as_named,
    check_fits,
    found_names,
    has_inner_dictionary,
    misfit,
    of_spark,
    stored,
)

ROWS: Final = 32 * 1024
"""Rows of one batch."""


def parquet(file: pa.NativeFile, start: int, end: int, schema: pa.Schema) -> Iterator[pa.Table]:
    """Return the rows of the row groups whose middle lies in the range."""
    import pyarrow.parquet as pq

    # Times of 96 bits, as Spark writes them, have more years than nanoseconds of 64 bits.
    with pq.ParquetFile(file, coerce_int96_timestamp_unit="us") as opened:
        found = opened.schema_arrow  # made anew each time that it is asked for
        wanted = found_names(found.names, schema.names)
        _check_columns(found, schema, wanted)
        groups = [
            n
            for n in range(opened.metadata.num_row_groups)
            # The middle lies in exactly one of any ranges, so each row group is read once.
            if start <= _middle(opened.metadata, n) < end
        ]
        if not groups:
            return
        if not wanted:
            # No wanted column is in the file, and its rows count all the same.
            yield from (_nulls(schema, opened.metadata.row_group(n).num_rows) for n in groups)
            return
        calendar = calendars.of_parquet(opened.metadata)
        columns = list(wanted.values())
        # Arrow cannot join dictionaries of several row groups within a struct or an array.
        are_apart = any(has_inner_dictionary(found.field(name).type) for name in columns)
        for part in [[group] for group in groups] if are_apart else [groups]:
            for batch in opened.iter_batches(
                batch_size=ROWS, row_groups=part, columns=columns, use_threads=False
            ):
                yield _fitted(batch, schema, wanted, calendar)


def orc(
    file: pa.NativeFile, start: int, end: int, size: int, schema: pa.Schema
) -> Iterator[pa.Table]:
    """Return the rows of the stripes of the range; the stripes of a file count as equally long."""
    from pyarrow import orc as library

    opened = library.ORCFile(file)
    wanted = found_names(opened.schema.names, schema.names)
    if schema.names and not wanted:
        _check_named(opened.schema.names)
    found = opened.schema
    # Whoever has asked for the number goes on to get it.
    times = {
        there: of_spark(found.field(there))
        for name, there in wanted.items()
        if pa.types.is_timestamp(schema.field(name).type)
    }
    kinds = pa.schema([field.with_type(times.get(field.name, field.type)) for field in found])
    _check_columns(kinds, schema, wanted)
    columns = list(wanted.values()) or [found.names[0]]
    calendar = calendars.of_orc(opened.metadata)
    for number in range(opened.nstripes):
        if not start <= number * size // opened.nstripes < end:
            continue
        stripe = opened.read_stripe(number, columns=columns)
        if wanted:
            yield _fitted(_viewed(stripe, times), schema, wanted, calendar)
        else:
            yield _nulls(schema, stripe.num_rows)


def _viewed(batch: pa.RecordBatch, kinds: Mapping[str, Any]) -> pa.RecordBatch:
    """Return a batch some of whose columns have other types, with the same bytes."""
    for name, kind in kinds.items():
        place = batch.schema.get_field_index(name)
        batch = batch.set_column(place, name, batch.column(place).view(kind))
    return batch


def avro(
    file: pa.NativeFile, start: int, end: int, size: int, schema: pa.Schema
) -> Iterator[pa.Table]:
    """Return the rows of the blocks whose sync marker begins in the range."""
    from balanced_source_adapters.files.avro import AvroFile

    opened = AvroFile(file, size)
    wanted = found_names(opened.names, schema.names)
    columns = list(wanted.values())
    _check_columns(opened.schema(columns), schema, wanted)
    calendar = calendars.of_avro(opened.metadata)
    for found in opened.batches(start, end, columns):
        if isinstance(found, int):
            yield _nulls(schema, found)
        else:
            yield _fitted(found, schema, wanted, calendar)


def _check_named(names: Sequence[str]) -> None:
    """Check that columns have names: old versions of Hive wrote numbers in their place.

    Raises:
        TypeError: they have none.
    """
    if names and all(name.startswith("_col") for name in names):
        raise TypeError(
            f"its columns have no names but {', '.join(names)}, as old versions of Hive wrote them:"
            " use these in the schema, and rename them in the query"
        )


def _check_columns(found: pa.Schema, schema: pa.Schema, wanted: Mapping[str, str]) -> None:
    """Check that the columns of a file fit the schema, before any row is read.

    Args:
        found: columns of the file.
        schema: of the rows.
        wanted: columns of the schema that the file has → their names there.

    Raises:
        TypeError: one does not. Names it and both types.
    """
    for name, there in wanted.items():
        kind, into = found.field(there).type, schema.field(name).type
        check_fits(there, as_named(kind, into), into)


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


def _fitted(
    batch: pa.RecordBatch, schema: pa.Schema, wanted: Mapping[str, str], calendar: OldCalendar
) -> pa.Table:
    columns = []
    for field in schema:
        there = wanted.get(field.name)
        if there is None:
            columns.append(pa.nulls(batch.num_rows, field.type))
            continue
        found = calendar.converted(there, stored(batch.column(there)))
        try:
            columns.append(_cast(found, field.type))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise TypeError(f"{misfit(there, found.type, field.type)}: {text_of(error)}") from error
    return pa.Table.from_arrays(columns, schema=schema)


def _cast(found: pa.Array, kind: pa.DataType) -> pa.Array:
    if found.type == kind:
        return found
    # A cast finds members of structs by their exact names.
    named = as_named(found.type, kind)
    return (found if named == found.type else found.view(named)).cast(kind)


def _nulls(schema: pa.Schema, rows: int) -> pa.Table:
    if not schema.names:
        return pa.table({"": pa.nulls(rows)})
    return pa.table({f.name: pa.nulls(rows, f.type) for f in schema}, schema=schema)
