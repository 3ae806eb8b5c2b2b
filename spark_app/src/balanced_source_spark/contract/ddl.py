"""The columns in a DDL text. Spark parses the types; here names, commas and first words count."""

import re
from collections.abc import Collection, Iterable
from typing import Final

from balanced_source.names import shown
from balanced_source_adapters.suggestions import nearest
from balanced_source_spark.contract.option_table import rejected

_OPEN = "<(["
_CLOSE = ">)]"
_QUOTES = "`'\""

_NAME: Final = r"`(?:[^`]|``)*`"
_PIECES: Final = re.compile(rf"""{_NAME}|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|.""", re.DOTALL)
"""A quoted text, or a character. A quote by itself is not closed."""

_TYPE: Final = re.compile(rf"(?:{_NAME}|[^\s:`][^\s:]*)\s*:?\s*([A-Za-z_]\w*)")
"""The first word of a column's type, behind its name."""

_NOT_NULL: Final = re.compile(
    rf"""({_NAME}|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")|\s*\bNOT\s+NULL\b""",
    re.DOTALL | re.IGNORECASE,
)
"""A quoted text, or the words that forbid nulls."""

_TYPES: Final = (
    *("array", "bigint", "binary", "boolean", "byte", "char", "character", "date", "dec"),
    *("decimal", "double", "float", "geography", "geometry", "int", "integer", "interval", "long"),
    *("map", "numeric", "real", "short", "smallint", "string", "struct", "time", "timestamp"),
    *("timestamp_ltz", "timestamp_ntz", "tinyint", "varchar", "variant", "void"),
)
"""First words of the types of Spark 4.2."""


def columns_of(ddl: str) -> list[tuple[str, str]]:
    """Return the name and the text of each column."""
    return [(_name(text), text) for text in map(str.strip, _parts(ddl)) if text]


def check_ddl(ddl: str) -> None:
    """Check what can be checked without Spark's parser, which only the driver's JVM has.

    Raises:
        ValueError: these are not columns that Spark accepts. Says what is wrong.
    """
    if _is_open(ddl):
        raise ValueError(f"the columns {shown(ddl)} have a bracket or a quote that is not closed")
    for part in _parts(ddl):
        _check_column(part.strip(), ddl)
    check_names(name for name, _ in columns_of(ddl))


def check_names(names: Iterable[str]) -> None:
    """Check that no two columns have the same name. Spark ignores the case of names.

    Raises:
        ValueError: two columns have. Names them.
    """
    seen: dict[str, str] = {}
    for name in names:
        if (folded := name.lower()) in seen:
            pair = f"{shown(seen[folded])} and {shown(name)}"
            raise ValueError(f"two columns have the same name, {pair}: rename one of them")
        seen[folded] = name


def selected(ddl: str, columns: Collection[str]) -> str:
    """Return the DDL of some columns, in the order of the DDL.

    Raises:
        InvalidSpecError: a column is missing there.
    """
    known = columns_of(ddl)
    names = [name for name, _ in known]
    if missing := [name for name in columns if name not in names]:
        raise rejected(
            "columns",
            f"{shown(missing[0])} is not a column of schema: there are {', '.join(names)}",
        )
    return ", ".join(text for name, text in known if name in columns)


def nullable(ddl: str) -> str:
    """Return the DDL without NOT NULL, also inside of types."""
    return _NOT_NULL.sub(lambda found: found[1] or "", ddl)


def _parts(ddl: str) -> list[str]:
    """Return the texts between commas that are in no bracket, quote or backtick."""
    parts, depth = [""], 0
    for piece in _PIECES.findall(ddl):
        depth += (piece in _OPEN) - (piece in _CLOSE)
        if piece == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += piece
    return parts


def _is_open(ddl: str) -> bool:
    """Whether a bracket or a quote is not closed, or a bracket is closed without being open."""
    depth = 0
    for piece in _PIECES.findall(ddl):
        depth += (piece in _OPEN) - (piece in _CLOSE)
        if depth < 0 or piece in _QUOTES:
            return True
    return depth > 0


def _check_column(column: str, ddl: str) -> None:
    if not column:
        raise ValueError(f"the columns {shown(ddl)} lack one: write them as name TYPE, name TYPE")
    name, found = _name(column), _TYPE.match(column)
    if found is None:
        raise ValueError(f"column {shown(name)} has no type: write it as name TYPE")
    if (kind := found[1].lower()) not in _TYPES:
        near = nearest(kind, _TYPES)
        hint = f" (did you mean {near.upper()}?)" if near else ""
        raise ValueError(
            f"column {shown(name)} has type {shown(found[1])}, which Spark does not know{hint}"
        )


def _name(column: str) -> str:
    if (quoted := re.match(_NAME, column)) is not None:
        return quoted[0][1:-1].replace("``", "`")
    return column.replace(":", " ").split()[0]
