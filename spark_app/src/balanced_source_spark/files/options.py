"""Reads the options of files. Keys of the mappings are lower case."""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from balanced_source.connectors.files import (
    LATE,
    SPLIT_BYTES,
    FilesSource,
    Format,
    OnFileLoss,
    StoreKind,
    kind_of_all,
)
from balanced_source.names import separated, shown
from balanced_source_adapters.files.stores import inner, selection
from balanced_source_adapters.folder import state_path
from balanced_source_spark.contract.ddl import check_ddl, nullable, selected
from balanced_source_spark.contract.option_table import rejected
from balanced_source_spark.contract.values import choice, flag, is_url, number, seconds
from balanced_source_spark.files.option_names import METADATA
from balanced_source_spark.files.store_options import store_settings

BATCH_AHEAD: Final = 1000
"""Blocks that a reader of a batch query asks for at once: nothing is read while it plans."""

MODES: Final = ("permissive", "dropmalformed", "failfast")
CORRUPT: Final = "_corrupt_record"
_IN_LINES: Final = frozenset(
    (
        *("boolean", "byte", "short", "integer", "long", "float", "double", "decimal", "string"),
        *("binary", "date", "timestamp", "timestamp_ltz", "timestamp_ntz", "void"),
    )
)
"""First words of the types of values in lines, as Spark's `jsonValue` writes them."""

_LIMITED_TEXTS: Final = ("char", "varchar")

_ENDS: Final = "\0\r\n"
_OWN_TYPE: Final = {Format.TEXT: "string", Format.BINARY: "binary"}
"""Type of the only column of a format."""
_OWN_COLUMN: Final = {Format.TEXT: "value STRING", Format.BINARY: "content BINARY"}


@dataclass(frozen=True, slots=True, kw_only=True)
class FileReadOptions:
    """What schema and tasks must know. Pickled.

    Attributes:
        kind: format.
        ddl: columns of the data; empty if Spark's own ``schema`` must say.
        is_inferred: whether `ddl` comes from the files, and not from the user.
        columns: names of the columns to read; empty for all.
        has_metadata: whether rows have the columns of `METADATA`.
        mode: what happens to corrupt records.
        corrupt: column for their text; empty for formats without it.
        header, separator, quote, escape, null: see the reference page.
    """

    kind: Format
    ddl: str = ""
    is_inferred: bool = False
    columns: tuple[str, ...] = ()
    has_metadata: bool = True
    mode: str = MODES[0]
    corrupt: str = CORRUPT
    header: bool = False
    separator: str = ","
    quote: str = '"'
    escape: str = ""
    null: str = ""

    @property
    def nulls(self) -> tuple[str, ...]:
        """Texts of CSV that mean null where they are not in quotes: an empty one always does."""
        return tuple(dict.fromkeys((self.null, "")))


def file_read_options(options: Mapping[str, str]) -> FileReadOptions:
    """Return what the options say of rows.

    Raises:
        InvalidSpecError: names the option.
    """
    kind = Format(choice(options, "fileFormat", tuple(Format)))
    separator, quote, escape = _csv_characters(options)
    return FileReadOptions(
        kind=kind,
        ddl=options.get("schema", "") or _OWN_COLUMN.get(kind, ""),
        is_inferred=flag(options, "inferSchema", default=False),
        columns=separated(options.get("columns", "")),
        has_metadata=flag(options, "metadataColumns", default=True),
        mode=choice(options, "mode", MODES),
        # In other formats it is a column like any other, such as one that a former query wrote.
        corrupt=options.get("columnnameofcorruptrecord", CORRUPT)
        if kind in (Format.JSON, Format.CSV)
        else "",
        header=flag(options, "header", default=False),
        separator=separator,
        quote=quote,
        escape=escape,
        null=options.get("nullvalue", ""),
    )


def ddl_of(read: FileReadOptions) -> str:
    """Return the columns of the rows as DDL. All may be null, as with Spark's own file sources.

    Spark would answer a question about nulls without a look at the rows where they are forbidden.

    Raises:
        InvalidSpecError: no one says what they are, or they are invalid.
    """
    if not read.ddl:
        raise rejected(
            "schema",
            f"is missing: format {read.kind} needs the columns, such as id BIGINT, name STRING; or"
            " set inferSchema",
        )
    ddl = nullable(selected(read.ddl, read.columns) if read.columns else read.ddl)
    added = [f"`{name}` {kind}" for name, kind in METADATA.items()] if read.has_metadata else []
    ddl = ", ".join([ddl, *added])
    try:
        check_ddl(ddl)
    except ValueError as error:
        raise rejected("schema", str(error)) from error
    return ddl


def check_columns(read: FileReadOptions, columns: Iterable[tuple[str, str]]) -> None:
    """Check that the format can fill the columns of the rows.

    Args:
        read: options.
        columns: name and type, as Spark's `simpleString` writes it.

    Raises:
        InvalidSpecError: it cannot.
    """
    added = METADATA if read.has_metadata else {}
    data = {name: kind for name, kind in columns if name not in added}
    if (own := _OWN_TYPE.get(read.kind)) and any(
        [len(data) > 1, *(t != own for t in data.values())]
    ):
        raise rejected(
            "schema", f"format {read.kind} has one column, which is {own.upper()}: leave schema out"
        )
    if data.get(read.corrupt, "string") != "string":
        raise rejected("schema", f"column {shown(read.corrupt)} is for text: make it a STRING")
    if list(data) == [read.corrupt]:
        raise rejected(
            "schema",
            f"has only {shown(read.corrupt)}, and which records are malformed depends on the other"
            " columns: add them",
        )


def check_types(read: FileReadOptions, columns: Iterable[tuple[str, Any]]) -> None:
    """Check that values of the types can be read from files of the format.

    Args:
        read: options.
        columns: name and type, as Spark's `jsonValue` writes it.

    Raises:
        InvalidSpecError: a column has a type that has no form in JSON or CSV here, or text of a
            limited length, which Spark does not take from a Python process.
    """
    is_csv = read.kind is Format.CSV
    has_types = read.kind not in (Format.JSON, Format.CSV)
    for name, kind in columns:
        wrong = _limited_text(kind) if has_types else _unreadable(kind, is_csv=is_csv)
        if wrong is not None:
            is_text = is_csv or wrong.startswith(_LIMITED_TEXTS)
            remedy = "make it a STRING, or leave it out" if is_text else "leave it out"
            raise rejected(
                "schema",
                f"format {read.kind} cannot read column {shown(name)} of type {wrong.upper()}:"
                f" {remedy}",
            )


def _limited_text(kind: Any) -> str | None:
    """Return the first type within a type that is text of a limited length; None without any."""
    match kind:
        case str(text):
            return text if text.startswith(_LIMITED_TEXTS) else None
        case {"type": "struct", "fields": list(fields)}:
            return next(filter(None, (_limited_text(field["type"]) for field in fields)), None)
        case {"type": "array", "elementType": element}:
            return _limited_text(element)
        case {"type": "map", "keyType": key, "valueType": value}:
            return _limited_text(key) or _limited_text(value)
        case _:
            return None


def _unreadable(kind: Any, *, is_csv: bool) -> str | None:
    """Return the first type within a type that lines cannot have; None without any."""
    match kind:
        case str(text):
            word = text.partition("(")[0].split()[0]
            return None if word in _IN_LINES or (is_csv and word == "time") else text
        case {"type": "array", "elementType": inner} if not is_csv:
            return _unreadable(inner, is_csv=False)
        case {"type": "struct", "fields": list(fields)} if not is_csv:
            found = (_unreadable(field["type"], is_csv=False) for field in fields)
            return next(filter(None, found), None)
        case _:
            return str(kind["type"])


def files_source(options: Mapping[str, str], *, is_batch: bool) -> FilesSource:
    """Return the source of a query that runs without an operator and without local mode.

    Raises:
        InvalidSpecError: names the option.
    """
    interval = options.get("discoveryinterval")
    if interval is not None and is_batch:
        raise rejected("discoveryInterval", "has no meaning for a batch query: leave it out")
    if interval is not None and not options.get("statedir"):
        raise rejected(
            "discoveryInterval",
            "needs the option stateDir: without it, the Spark checkpoint would name every file that"
            " was ever read",
        )
    paths = paths_of(options)
    _check_state_dir(options, paths)
    losses = tuple(known.value.lower() for known in (OnFileLoss.FAIL, OnFileLoss.SKIP))
    return FilesSource(
        paths=paths,
        kind_of_file=file_read_options(options).kind,
        store=store_settings(options, paths),
        split_bytes=number(options, "splitBytes", SPLIT_BYTES, least=1),
        discovery_interval=None
        if interval is None
        else max(0.1, seconds(interval, "discoveryInterval")),
        late=seconds(options["latewindow"], "lateWindow") if "latewindow" in options else LATE,
        on_loss=OnFileLoss(choice(options, "onLoss", losses).capitalize()),
        ahead=BATCH_AHEAD if is_batch else number(options, "lookAhead", 2, least=1),
        names_grow=flag(options, "namesGrow", default=False),
        may_repeat=flag(options, "allowRepeat", default=False),
        queue=_queue(options),
    )


def paths_of(options: Mapping[str, str]) -> tuple[str, ...]:
    """Return the paths of a query, which all lie in stores of one kind.

    Raises:
        InvalidSpecError: names the option.
    """
    name = "path" if "path" in options else "paths"
    given = [options["path"]] if "path" in options else _array(options.get("paths", "[]"))
    if not given or ("path" in options and "paths" in options):
        raise rejected(name, "set either path, or paths as a JSON array with at least one text")
    try:
        for path in given:
            inner(path)
        kind_of_all(given)
    except ValueError as error:
        raise rejected(name, str(error)) from error
    return tuple(given)


def _check_state_dir(options: Mapping[str, str], paths: Iterable[str]) -> None:
    """Refuse a folder of the state in which the query would find its own files."""
    folder = options.get("statedir")
    if not folder or kind_of_all(tuple(paths)) is not StoreKind.VOLUME:
        return
    state = os.path.abspath(state_path(Path(folder)))  # noqa: PTH100 - a path as it is spelled
    if selection(paths)(state):
        raise rejected(
            "stateDir", f"the files of {shown(folder)} are read, too: name another folder"
        )


def _array(text: str) -> list[str]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise rejected("paths", f"expected a JSON array of text, not {shown(text)}") from error
    if not (isinstance(found, list) and all(isinstance(path, str) and path for path in found)):
        raise rejected("paths", f"expected a JSON array of text, not {shown(text)}")
    return found


def _queue(options: Mapping[str, str]) -> str:
    name = "s3NotificationQueue"
    queue = options.get("s3notificationqueue", "")
    if queue and not is_url(queue):
        raise rejected(name, f"expected the URL of a queue, not {shown(queue)}")
    if queue and "discoveryinterval" not in options:
        raise rejected(name, "needs the option discoveryInterval: events tell of later objects")
    if queue and (kind := kind_of_all(paths_of(options))) is not StoreKind.S3:
        raise rejected(name, f"has no meaning for {kind}: leave it out")
    return queue


def _csv_characters(options: Mapping[str, str]) -> tuple[str, str, str]:
    """Return what separates, quotes and escapes values."""
    separator = _character(options, "sep", ",")
    quote = _character(options, "quote", '"', may_miss=True)
    escape = _character(options, "escape", "", may_miss=True)
    if separator in {quote, escape}:
        raise rejected("sep", f"{shown(separator)} is also set as quote or escape: use another one")
    # A quote that escapes itself is a doubled quote, which is how Spark's users write it.
    return separator, quote, "" if escape == quote else escape


def _character(
    options: Mapping[str, str], name: str, default: str, *, may_miss: bool = False
) -> str:
    value = options.get(name.lower(), default).replace("\\t", "\t")
    is_one = len(value.encode()) == 1 and value not in _ENDS
    if not is_one and not (may_miss and not value):
        raise rejected(name, f"expected one ASCII character within a line, not {shown(value)}")
    return value
