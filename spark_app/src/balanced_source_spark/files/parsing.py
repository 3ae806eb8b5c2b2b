"""Turns lines into columns.

JSON, CSV and plain text, with Spark's three modes for records that do not fit.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.csv
import pyarrow.json

from balanced_source.connectors.files import Format
from balanced_source_spark.files.lines import texts
from balanced_source_spark.files.options import FileReadOptions

Parse = Callable[[bytes], pa.Table]


class CorruptRecordError(Exception):
    """A record does not fit the schema, and the mode is FAILFAST."""


@dataclass(frozen=True)
class Parser:
    """Parses lines of one format.

    Attributes:
        read: options.
        schema: columns of the data, without metadata and without the column of corrupt records.
        names: names of the columns of a line, in their order; only for `csv`.
        has_corrupt: whether rows have the column of corrupt records.
    """

    read: FileReadOptions
    schema: pa.Schema
    names: tuple[str, ...]
    has_corrupt: bool

    def tables(self, lines: bytes) -> Iterator[pa.Table]:
        """Return the records of some lines, in their order.

        Raises:
            CorruptRecordError: see the class.
        """
        if self.read.kind is Format.TEXT:
            yield pa.table(
                {self.schema.names[0]: texts(lines)} if self.schema.names else {"": texts(lines)}
            )
            return
        for begin, table in _by_halves(lines, self._parsed):
            if table is not None:
                yield self._with_corrupt(table, [None] * table.num_rows)
            else:
                yield from self._unfit(begin)

    def _unfit(self, line: bytes) -> Iterator[pa.Table]:
        text = line.decode("utf-8", "replace").rstrip("\r\n")
        match self.read.mode:
            case "failfast":
                raise CorruptRecordError(f"does not fit the schema: {text[:200]!r}")
            case "dropmalformed":
                return
            case _:
                empty = pa.table(
                    {f.name: pa.nulls(1, f.type) for f in self.schema}, schema=self.schema
                )
                yield self._with_corrupt(empty, [text])

    def _with_corrupt(self, table: pa.Table, found: Sequence[str | None]) -> pa.Table:
        if not self.has_corrupt:
            return table
        return table.append_column(self.read.corrupt, pa.array(found, pa.string()))

    def _parsed(self, lines: bytes) -> pa.Table:
        table = self._csv(lines) if self.read.kind is Format.CSV else self._json(lines)
        columns = [converted(table.column(field.name), field.type) for field in self.schema]
        return pa.Table.from_arrays(columns, schema=self.schema)

    def _json(self, lines: bytes) -> pa.Table:
        return pa.json.read_json(
            pa.BufferReader(lines),
            # One block, in one thread: the order of the records must be that of the lines.
            read_options=pa.json.ReadOptions(use_threads=False, block_size=len(lines) + 1),
            parse_options=pa.json.ParseOptions(
                explicit_schema=self._raw, unexpected_field_behavior="ignore"
            ),
        )

    def _csv(self, lines: bytes) -> pa.Table:
        read = self.read
        return pa.csv.read_csv(
            pa.BufferReader(lines),
            read_options=pa.csv.ReadOptions(
                column_names=list(self.names), use_threads=False, block_size=len(lines) + 1
            ),
            parse_options=pa.csv.ParseOptions(
                delimiter=read.separator,
                quote_char=read.quote or False,
                escape_char=read.escape or False,
                # Quotes are doubled only where no escape character is set: docs/files.md.
                double_quote=not read.escape,
            ),
            convert_options=pa.csv.ConvertOptions(
                column_types=self._raw,
                include_columns=self._raw.names,
                null_values=[read.null],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )

    @cached_property
    def _raw(self) -> pa.Schema:
        """Times are parsed by `converted`, because the parsers know fewer forms of them."""
        return pa.schema(
            [(f.name, pa.string() if _is_time(f.type) else f.type) for f in self.schema]
        )


def converted(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """Return a column in another type. Times without a zone are UTC.

    Raises:
        pyarrow.ArrowInvalid: a value does not fit.
    """
    if column.type == kind:
        return column
    if pa.types.is_string(column.type) and pa.types.is_timestamp(kind) and kind.tz is not None:
        try:
            return column.cast(kind)
        except pa.ArrowInvalid:
            return column.cast(pa.timestamp(kind.unit)).cast(kind)
    return column.cast(kind)


def _is_time(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def _by_halves(lines: bytes, parse: Parse) -> Iterator[tuple[bytes, pa.Table | None]]:
    """Parse lines, and halve what fails until single lines are left.

    None for a line that does not fit.
    """
    if not lines.strip():
        return
    try:
        table = parse(lines)
    except pa.ArrowInvalid:
        table = None
    if table is not None:
        yield lines, table
        return
    # Arrow does not say which line failed: halving finds it in few attempts.
    middle = _middle(lines)
    if middle is None:
        yield lines, None
        return
    yield from _by_halves(lines[:middle], parse)
    yield from _by_halves(lines[middle:], parse)


def _middle(lines: bytes) -> int | None:
    """Return where a line near the middle begins; None if there is one line alone."""
    after = lines.find(b"\n", len(lines) // 2, len(lines) - 1)
    if after < 0:
        after = lines.rfind(b"\n", 0, len(lines) // 2)
    return after + 1 if after >= 0 else None
