"""Turns lines into columns.

JSON, CSV and plain text, with Spark's three modes for records that do not fit.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json

from balanced_source.connectors.files import Format
from balanced_source_spark.files.lines import BYTE_ORDER_MARK, texts
from balanced_source_spark.files.malformed import Test, lines_of, quotes_remover, test_of
from balanced_source_spark.files.options import FileReadOptions

Parse = Callable[[bytes], Any]

SIFTED: Final = 64 * 1024
"""Bytes of a part with a malformed line in which each line is tested by itself.

Halving it costs less for a single malformed line, and twenty times as much for many.
"""

_BLANKS: Final = rb"[ \t\r\xef\xbb\xbf]*"
_FIRST_NULL: Final = re.compile(_BLANKS + rb"null")
_LATER_NULL: Final = re.compile(rb"\n" + _BLANKS + rb"null")
"""Lines that begin with ``null``: Arrow's parser of JSON crashes the process there."""

MOST_DIGITS: Final = 38
"""Digits of a decimal."""

_AROUND_NUMBERS: Final = " \t"
"""What may stand around a number of CSV, as in columns of integers."""

_LONG_FRACTION: Final = r"(\.[0-9]{6})[0-9]+"
"""Microseconds, and digits beyond them."""


class CorruptRecordError(Exception):
    """A record does not fit the schema, and the mode is FAILFAST."""


@dataclass(frozen=True)
class Parser:
    """Parses lines of one format.

    Attributes:
        read: options.
        schema: columns of the data, without metadata and without the column of corrupt records.
        names: names of the columns of a line, in their order; only for `csv`. Empty where no one
            says them and none is read.
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
        # Few large tables: each costs time, whatever its size.
        if pieces := list(self._pieces(lines)):
            yield pa.concat_tables(pieces)

    def _pieces(self, lines: bytes) -> Iterator[pa.Table]:
        for part, table in _by_halves(lines, self._tried, least=SIFTED):
            if table is not None:
                yield self._with_corrupt(table, None)
            elif not self._is_blank(part):
                yield self._sifted(part)

    def _sifted(self, lines: bytes) -> pa.Table:
        """Return the records of some lines of which one is malformed at least."""
        tested = [
            (line, self._is_malformed(line)) for line in lines_of(lines) if not self._is_blank(line)
        ]
        tables: list[pa.Table] = [self._counted.empty_table()]
        good = self._lines_of_tables(
            b"".join(line for line, is_bad in tested if not is_bad), tables
        )
        order: list[int | None] = []
        texts: list[str | None] = []
        for line, is_bad in tested:
            if not is_bad and (rows := next(good)) is not None:
                order += rows
                texts += [None] * len(rows)
            elif (text := self._malformed(line)) is not None:
                order.append(None)
                texts.append(text)
        # A row number of None makes a row of nulls.
        table = pa.concat_tables(tables).combine_chunks().take(pa.array(order, pa.int64()))
        return self._with_corrupt(table, texts)

    def _lines_of_tables(self, lines: bytes, tables: list[pa.Table]) -> Iterator[range | None]:
        """Yield the numbers of the rows of each line; None for a malformed one.

        Args:
            lines: none is blank.
            tables: get the tables with the rows, in their order.
        """
        rows = 0
        for part, table in _by_halves(lines, self._tried) if lines else ():
            if table is None:
                yield None
                continue
            tables.append(table)
            before, rows = rows, rows + table.num_rows
            if part.find(b"\n", 0, -1) < 0:
                yield range(before, rows)  # several objects in one line
            else:
                yield from (range(n, n + 1) for n in range(before, rows))

    def _malformed(self, line: bytes) -> str | None:
        """Return the text of a malformed line; None if it is dropped.

        Raises:
            CorruptRecordError: the mode is FAILFAST.
        """
        text = line.decode("utf-8", "replace").rstrip("\r\n")
        if self.read.mode == "failfast":
            raise CorruptRecordError(f"does not fit the schema: {text[:200]!r}")
        return None if self.read.mode == "dropmalformed" else text

    def _with_corrupt(self, table: pa.Table, found: Sequence[str | None] | None) -> pa.Table:
        if not self.has_corrupt:
            return table
        kind = pa.string()
        texts_of_rows = pa.nulls(table.num_rows, kind) if found is None else pa.array(found, kind)
        return table.append_column(self.read.corrupt, texts_of_rows)

    def _tried(self, lines: bytes) -> pa.Table | None:
        """Return the records of some lines; None if one of the lines is malformed, or all blank."""
        if self._is_blank(lines):
            return None
        for attempt in self._attempts(lines):
            try:
                return self._parsed(attempt)
            except pa.ArrowInvalid:
                continue
        return None

    def _attempts(self, lines: bytes) -> Iterator[bytes]:
        yield lines
        if self.read.kind is Format.JSON and (bare := self._without_quotes(lines)) != lines:
            yield bare

    @cached_property
    def _without_quotes(self) -> Callable[[bytes], bytes]:
        return quotes_remover(self.schema)

    @cached_property
    def _is_malformed(self) -> Test:
        return test_of(self.read, self.schema, self.names)

    def _parsed(self, lines: bytes) -> pa.Table:
        table = self._csv(lines) if self.read.kind is Format.CSV else self._json(lines)
        if not self._has_its_lines(table.num_rows, lines):
            raise pa.ArrowInvalid("a record ends in another line than it begins")
        columns = [converted(table.column(field.name), field.type) for field in self.schema]
        columns = columns or [pa.nulls(table.num_rows)]
        return pa.Table.from_arrays(columns, schema=self._counted)

    @cached_property
    def _counted(self) -> pa.Schema:
        """Columns of the tables: a table without any would not say how many rows it has."""
        return self.schema if self.schema.names else pa.schema([("", pa.null())])

    def _has_its_lines(self, rows: int, lines: bytes) -> bool:
        """Return whether each line has records of its own.

        Arrow takes the end of a line for a part of a value where a quote or an object is open. How
        many lines that swallows would depend on where a block or a batch ends.
        """
        if self.read.kind is Format.CSV and self._is_open(lines):
            return False
        count = lines.count(b"\n") + (not lines.endswith(b"\n"))
        if count == 1:
            return rows > 0  # several objects in one line are all read
        # A line of spaces alone is a record for Arrow if there is one column.
        is_exact = self.read.kind is not Format.CSV or len(self.names) > 1
        if rows == count and is_exact:
            return True
        return rows == sum(not self._is_blank(line) for line in lines.split(b"\n"))

    def _is_open(self, lines: bytes) -> bool:
        """Return whether a quote or an escape of the last line of CSV needs a further line."""
        begin, last = len(lines), b""
        while begin and self._is_blank(last):
            end = begin - lines.endswith(b"\n", 0, begin)
            begin = lines.rfind(b"\n", 0, end) + 1
            last = lines[begin:end].rstrip(b"\r")
        marks = [mark.encode() for mark in (self.read.quote, self.read.escape) if mark]
        if not any(mark in last for mark in marks):
            return False
        try:
            twice = self._csv(last + b"\n" + last)
        except pa.ArrowInvalid:
            return True
        # The second line is swallowed where something is open.
        return bool(twice.num_rows == 1)

    def _json(self, lines: bytes) -> pa.Table:
        if b"null" in lines and (_FIRST_NULL.match(lines) or _LATER_NULL.search(lines)):
            raise pa.ArrowInvalid("null is not an object")
        table = pa.json.read_json(
            pa.BufferReader(lines),
            # One block, in one thread: the order of the records must be that of the lines.
            read_options=pa.json.ReadOptions(use_threads=False, block_size=len(lines) + 1),
            parse_options=pa.json.ParseOptions(
                explicit_schema=self._raw, unexpected_field_behavior="ignore"
            ),
        )
        # Unlike the parser of CSV, it takes any bytes for text.
        if not lines.isascii():
            table.validate(full=True)
        return table

    def _csv(self, lines: bytes) -> pa.Table:
        quote = self.read.quote.encode()
        others = [field.name for field in self.schema if not _is_text(field.type)]
        quoted_nulls = [quote + null.encode() + quote for null in self.read.nulls]
        if not (quote and others and any(null in lines for null in quoted_nulls)):
            return self._csv_columns(lines, self._raw.names)
        # In quotes, the text for null is a text where a column holds texts, and null elsewhere.
        found = self._csv_columns(lines, others, has_quoted_nulls=True)
        if not (texts_only := [name for name in self._raw.names if name not in others]):
            return found
        of_texts = self._csv_columns(lines, texts_only)
        return pa.table(
            [*found.columns, *of_texts.columns], names=[*found.column_names, *of_texts.column_names]
        )

    def _csv_columns(
        self, lines: bytes, names: Sequence[str], *, has_quoted_nulls: bool = False
    ) -> pa.Table:
        read = self.read
        if not lines.endswith(b"\n"):
            # Without it, Arrow takes an empty last value for one in quotes where the value before
            # has some, and cannot tell how many columns a single line has.
            lines += b"\n"
        return pa.csv.read_csv(
            pa.BufferReader(lines),
            read_options=pa.csv.ReadOptions(
                column_names=list(self.names),
                autogenerate_column_names=not self.names,
                use_threads=False,
                block_size=len(lines) + 1,
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
                include_columns=names,
                null_values=read.nulls,
                strings_can_be_null=True,
                quoted_strings_can_be_null=has_quoted_nulls,
            ),
        )

    def _is_blank(self, lines: bytes) -> bool:
        """Return whether lines have no record."""
        text = lines.removeprefix(BYTE_ORDER_MARK)
        if self.read.kind is not Format.CSV:
            return not text.strip()
        # Nothing but separators is a record of empty values.
        return not text.strip(b" \t\r\n".replace(self.read.separator.encode(), b""))

    @cached_property
    def _raw(self) -> pa.Schema:
        """Columns as Arrow's parsers read them; `converted` does the rest.

        The parsers know fewer forms of times, and do not see where a decimal gets too many digits.
        """
        is_csv = self.read.kind is Format.CSV
        return pa.schema([(f.name, _parsed_as(f.type, is_csv=is_csv)) for f in self.schema])


def converted(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """Return a column in another type. Times without a zone are UTC.

    Raises:
        pyarrow.ArrowInvalid: a value does not fit.
    """
    if column.type == kind:
        return column
    return pa.chunked_array([_converted(chunk, kind) for chunk in column.chunks], kind)


def _converted(array: pa.Array, kind: pa.DataType) -> pa.Array:
    if array.type == kind:
        return array
    if pa.types.is_string(array.type) and pa.types.is_timestamp(kind):
        return _times(array, kind)
    if pa.types.is_string(array.type) and pa.types.is_decimal(kind):
        return _decimals(pc.ascii_trim(array, _AROUND_NUMBERS), kind)
    if pa.types.is_struct(array.type):
        members = [
            _converted(found, field.type)
            for found, field in zip(array.flatten(), kind, strict=True)
        ]
        return pa.StructArray.from_arrays(members, fields=list(kind), mask=array.is_null())
    if pa.types.is_list(array.type):
        values = _converted(array.values, kind.value_type)
        return pa.ListArray.from_arrays(array.offsets, values, type=kind, mask=array.is_null())
    return array.cast(kind)


def _times(texts_of_times: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return times that are written with or without a zone. Digits beyond the unit are cut off."""
    zones = (kind.tz,) if kind.tz is None else (kind.tz, None)
    # As text: nanoseconds of 64 bits have few years, and would be rounded up before 1970.
    cut = partial(pc.replace_substring_regex, pattern=_LONG_FRACTION, replacement=r"\1")
    for prepare in (_unchanged, cut):
        for zone in zones:
            try:
                return prepare(texts_of_times).cast(pa.timestamp(kind.unit, zone)).cast(kind)
            except pa.ArrowInvalid as error:
                failure = error
    raise failure


def _decimals(numbers: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return decimals that are written as text.

    A number that is far too large for the type becomes another one in Arrow's cast, unseen. So does
    one with more places than 128 bits hold, which is not zero: it is read in 256 bits.
    """
    most = 10.0 ** (kind.precision - kind.scale)
    found = pc.abs(pc.ascii_ltrim(numbers, "+").cast(pa.float64()))
    if pc.any(pc.greater(found, most)).as_py():
        raise pa.ArrowInvalid(f"a number does not fit {kind}")
    return numbers.cast(pa.decimal256(MOST_DIGITS, kind.scale)).cast(kind)


def _unchanged(texts_of_times: pa.Array) -> pa.Array:
    return texts_of_times


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind))


def _parsed_as(kind: pa.DataType, *, is_csv: bool) -> pa.DataType:
    """Return a type with text in place of times, and with decimals that can be checked."""
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return pa.string()
    if pa.types.is_decimal(kind):
        # Numbers of 38 digits stay exact in 256 bits, whatever zeros the scale adds to them.
        return pa.string() if is_csv else pa.decimal256(MOST_DIGITS, kind.scale)
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, _parsed_as(field.type, is_csv=is_csv)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(_parsed_as(kind.value_type, is_csv=is_csv))
    return kind


def _by_halves(lines: bytes, parse: Parse, *, least: int = 0) -> Iterator[tuple[bytes, Any]]:
    """Parse lines, and halve what fails until single lines are left, or few of them.

    None instead of a table for lines that do not fit.

    Args:
        lines: to parse.
        parse: returns a table or None.
        least: bytes of a part that is not halved.
    """
    table = parse(lines)
    # Arrow does not say which line failed: halving finds it in few attempts.
    middle = _middle(lines) if table is None and len(lines) > least else None
    if middle is None:
        yield lines, table
        return
    yield from _by_halves(lines[:middle], parse, least=least)
    yield from _by_halves(lines[middle:], parse, least=least)


def _middle(lines: bytes) -> int | None:
    """Return where a line near the middle begins; None if there is one line alone."""
    after = lines.find(b"\n", len(lines) // 2, len(lines) - 1)
    if after < 0:
        after = lines.rfind(b"\n", 0, len(lines) // 2)
    return after + 1 if after >= 0 else None
