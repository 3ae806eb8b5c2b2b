"""Infers the columns of files, as Spark's DDL.

A person checks the text, and writes it into the manifest.
"""

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from balanced_source.api import SecretReader
from balanced_source.connectors.files import File, Format, ListFiles, compression_of
from balanced_source.errors import RefusedDiscoveryError, text_of
from balanced_source_adapters.files.connector import listed
from balanced_source_adapters.files.file_store import FileStore
from balanced_source_adapters.files.stores import store_of
from balanced_source_adapters.files.wide_integers import widened

if TYPE_CHECKING:
    import pyarrow as pa

FILES: Final = 10
"""Files that are checked."""

SAMPLE: Final = 1024 * 1024
"""Bytes of each file of lines that are checked."""

DIGITS: Final = 38
"""Digits of a decimal of Spark, at most."""

_NULLS: Final = re.compile(rb"^[ \t\r\xef\xbb\xbf]*null[^\n]*\n?", re.MULTILINE)
"""Lines that begin with ``null``, which are malformed: Arrow's parser crashes the process there."""

_SIMPLE: Final = {
    "bool": "BOOLEAN",
    "int8": "TINYINT",
    "int16": "SMALLINT",
    "uint8": "SMALLINT",
    "int32": "INT",
    "uint16": "INT",
    "int64": "BIGINT",
    "uint32": "BIGINT",
    "uint64": "DECIMAL(20,0)",
    "halffloat": "FLOAT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "string": "STRING",
    "large_string": "STRING",
    "string_view": "STRING",
    "binary": "BINARY",
    "large_binary": "BINARY",
    "binary_view": "BINARY",
    "date32[day]": "DATE",
    "null": "STRING",
}
"""Name of an Arrow type → Spark's type. Nothing is known of a column without values."""


class CsvForm(NamedTuple):
    """How files of Csv are written, as the reader takes them.

    Attributes:
        header: whether the first line has names.
        separator: between values.
        quote: around values; empty: none.
        escape: character that escapes; empty: quotes are doubled.
        null: text that means null, besides an empty one.
    """

    header: bool = False
    separator: str = ","
    quote: str = '"'
    escape: str = ""
    null: str = ""


def inferred_ddl(call: ListFiles, secrets: SecretReader, csv: CsvForm | None = None) -> str:
    """Return the columns of some files that a call would list.

    Args:
        call: says which files, and their format: one that has columns.
        secrets: resolves the Secret of the store.
        csv: form of Csv files.

    Raises:
        DiscoveryError: there is no file with content, a file is damaged, or the files do not fit to
            each other.
    """
    store = store_of(call.store, call.paths, secrets)
    try:
        import pyarrow as pa
    except ModuleNotFoundError as error:
        raise _missing(error, call) from error
    schemas, ddl = [], ""
    for file in islice((file for file in listed(call, store) if file.size), FILES):
        try:
            schemas.append(_schema(store, file, call.kind, csv or CsvForm()))
            if call.kind is Format.CSV:
                _check_places(schemas)
            found = pa.unify_schemas(schemas, promote_options="permissive")
            ddl = ", ".join(f"{_quoted(each.name)} {_type(each.type, each.name)}" for each in found)
            if not call.kind.has_lines:
                _check_read(schemas, found)
        except ModuleNotFoundError as error:
            raise _missing(error, call) from error
        except (OSError, ValueError, TypeError, NotImplementedError, pa.ArrowException) as error:
            why = (
                f"the columns of {file.path} cannot be inferred: {text_of(error).rstrip('.')}."
                " Write the schema yourself"
            )
            raise RefusedDiscoveryError(why, scope=call.scope) from error
    if not ddl:
        raise RefusedDiscoveryError(
            f"{call.scope} has no file with content to infer from", scope=call.scope
        )
    return ddl


def _check_read(schemas: "Sequence[pa.Schema]", found: "pa.Schema") -> None:
    """Check that the reader takes the columns of each file as those of all.

    Raises:
        TypeError: it does not. Names the column.
    """
    from balanced_source_adapters.files.column_types import check_fits

    for field in found:
        wanted = _as_read(field.type)
        for schema in schemas:
            if field.name in schema.names:
                check_fits(field.name, schema.field(field.name).type, wanted)


def _as_read(kind: "pa.DataType") -> "pa.DataType":
    """Return the type of Arrow in which the reader returns values of a type that Spark has."""
    import pyarrow as pa
    from pyarrow import types

    from balanced_source_adapters.files.column_types import is_list, plain

    kind = plain(kind)
    if types.is_timestamp(kind):
        return pa.timestamp("us", tz="UTC")
    if types.is_decimal(kind):
        return pa.decimal128(kind.precision, kind.scale)
    if types.is_map(kind):
        return pa.map_(_as_read(kind.key_type), _as_read(kind.item_type))
    if types.is_struct(kind):
        return pa.struct([(field.name, _as_read(field.type)) for field in kind])
    if types.is_fixed_size_binary(kind):
        return pa.binary()
    if is_list(kind):
        return pa.list_(_as_read(kind.value_type))
    return {
        "uint8": pa.int16(),
        "uint16": pa.int32(),
        "uint32": pa.int64(),
        "uint64": pa.decimal128(20, 0),
        "halffloat": pa.float32(),
        "large_string": pa.string(),
        "string_view": pa.string(),
        "large_binary": pa.binary(),
        "binary_view": pa.binary(),
        "null": pa.string(),
    }.get(str(kind), kind)


def _missing(error: ModuleNotFoundError, call: ListFiles) -> RefusedDiscoveryError:
    why = f"{error.name} is missing: install balanced-source[spark]"
    return RefusedDiscoveryError(why, scope=call.scope)


def _check_places(schemas: "Sequence[pa.Schema]") -> None:
    """Check that the columns of the last file of Csv are those of the first, in their order.

    Raises:
        TypeError: they are others.
    """
    first, last = schemas[0].names, schemas[-1].names
    if first != last:
        raise TypeError(
            f"it has the columns {', '.join(last)}, and another file has {', '.join(first)}:"
            " columns of Csv are found by their place"
        )


def _schema(store: FileStore, file: File, kind: Format, csv: CsvForm) -> "pa.Schema":
    with closing(store.open(file.path)) as opened:
        match kind:
            case Format.PARQUET:
                import pyarrow.parquet as pq

                return pq.read_schema(opened)
            case Format.ORC:
                import pyarrow as pa
                from pyarrow import orc

                from balanced_source_adapters.files.column_types import of_spark

                found = orc.ORCFile(opened).schema
                return pa.schema([field.with_type(of_spark(field)) for field in found])
            case Format.AVRO:
                from balanced_source_adapters.files.avro import AvroFile

                return AvroFile(opened, file.size).schema()
            case Format.JSON:
                return _json_schema(_NULLS.sub(b"", _lines(opened, file, kind)))
            case Format.CSV:
                return _csv_schema(_lines(opened, file, kind), csv)
            case Format.TEXT | Format.BINARY:
                raise ValueError(f"{kind.value} has one column")


def _json_schema(lines: bytes) -> "pa.Schema":
    from pyarrow import json

    def parse(columns: "pa.Schema | None") -> "pa.Table":
        options = json.ParseOptions(
            explicit_schema=columns,
            unexpected_field_behavior="infer" if columns is None else "ignore",
        )
        return json.read_json(io.BytesIO(lines), parse_options=options)

    return widened(parse(None).schema, lines, parse)


def _csv_schema(lines: bytes, form: CsvForm) -> "pa.Schema":
    import pyarrow as pa
    from pyarrow import csv

    lines = lines.removesuffix(b"\n") + b"\n"  # Arrow refuses a single line without its end
    # A quote that escapes itself is a doubled quote.
    escape = "" if form.escape == form.quote else form.escape

    def parse(columns: "pa.Schema | None") -> "pa.Table":
        return csv.read_csv(
            io.BytesIO(lines),
            csv.ReadOptions(autogenerate_column_names=not form.header),
            csv.ParseOptions(
                delimiter=form.separator,
                quote_char=form.quote or False,
                escape_char=escape or False,
                double_quote=not escape,
            ),
            csv.ConvertOptions(
                column_types=columns,
                include_columns=None if columns is None else columns.names,
                null_values=list({form.null, ""}),
                quoted_strings_can_be_null=False,
            ),
        )

    found = widened(parse(None).schema, lines, parse)
    # A time of day is text for Spark, too.
    return pa.schema([f.with_type(pa.string()) if pa.types.is_time(f.type) else f for f in found])


def _lines(opened: Any, file: File, kind: Format) -> bytes:
    """Return the first lines of a file, as many as are checked."""
    import pyarrow as pa

    compression = compression_of(file.path, kind)
    found: bytes = (pa.CompressedInputStream(opened, compression) if compression else opened).read(
        SAMPLE
    )
    return found[: found.rfind(b"\n") + 1] if len(found) == SAMPLE else found


def _type(kind: "pa.DataType", column: str) -> str:
    """Return Spark's type for one of Arrow.

    Times without a zone count as UTC, as the reader takes them.

    Raises:
        TypeError: Spark has none.
    """
    from pyarrow import types

    from balanced_source_adapters.files.column_types import is_list, plain

    kind = plain(kind)
    if types.is_timestamp(kind):
        return "TIMESTAMP"
    if types.is_decimal(kind):
        if kind.precision > DIGITS:
            raise TypeError(f"column {column} needs {kind.precision} digits, more than {DIGITS}")
        return f"DECIMAL({kind.precision},{kind.scale})"
    if types.is_map(kind):
        return f"MAP<{_type(kind.key_type, column)}, {_type(kind.item_type, column)}>"
    if types.is_struct(kind):
        return f"STRUCT<{', '.join(_members(kind, column))}>"
    if types.is_fixed_size_binary(kind):
        return "BINARY"
    if is_list(kind):
        return f"ARRAY<{_type(kind.value_type, column)}>"
    if (name := _SIMPLE.get(str(kind))) is None:
        raise TypeError(f"column {column} has the type {kind}, which Spark does not have")
    return name


def _members(kind: "pa.DataType", column: str) -> Iterator[str]:
    for field in kind:
        yield f"{_quoted(field.name)}: {_type(field.type, f'{column}.{field.name}')}"


def _quoted(name: str) -> str:
    return name if name.isidentifier() and name.isascii() else "`" + name.replace("`", "``") + "`"
