"""Compares the columns of parts.

All parts have the same columns, with the same names and types, in the same order.
"""

import re
from collections import deque
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from balanced_source.errors import InvalidSpecError
from balanced_source_spark.contract.ddl import columns_of

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_SYNONYMS: Final = {
    "long": "bigint",
    "integer": "int",
    "short": "smallint",
    "byte": "tinyint",
    "real": "float",
    "dec": "decimal",
    "numeric": "decimal",
    "timestamp_ltz": "timestamp",
    "character": "char",
}
"""Spark's other words for simple types."""

_NESTED: Final = frozenset({"array", "map", "struct"})

_DEFAULTS: Final = {"decimal": "decimal(10,0)"}
"""Types whose arguments Spark adds where they are left out."""

_FURTHER: Final = frozenset({"year", "month", "day", "hour", "minute", "second", "to"})
"""Words of a type behind the first one."""

_TOKENS: Final = re.compile(
    r"""`(?:[^`]|``)*`|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^\s<>(),:`'"]+|[<>(),:]"""
)
"""A quoted text, a word or number, or a sign."""

Columns = list[tuple[str, str]]


def check_columns(schemas: Iterable[tuple[str, "StructType | str"]]) -> None:
    """Check that parts have the same columns.

    Args:
        schemas: name of each part, and its columns.

    Raises:
        InvalidSpecError: they differ. Names the first difference.
    """
    known = [(name, columns(schema)) for name, schema in schemas]
    first, expected = known[0]
    for name, found in known[1:]:
        if found != expected:
            raise InvalidSpecError(
                f"parts {first} and {name} have different columns: {_difference(expected, found)}."
                " Set columns, schema and metadataColumns of the parts so that both have the same"
                " columns in the same order",
                field="option parts",
            )


def columns(schema: "StructType | str") -> Columns:
    """Return names and types of columns, each type in one spelling."""
    if isinstance(schema, str):
        return [(name, _type(name, text)) for name, text in columns_of(schema)]
    return [(field.name, field.dataType.simpleString()) for field in schema.fields]


def _type(name: str, text: str) -> str:
    """Return the type in a column of DDL, such as ``id BIGINT NOT NULL``, as Spark shows types."""
    rest = text[len(name) + 2 :] if text.startswith("`") else text[len(name) :]
    tokens = deque(_TOKENS.findall(rest))
    if tokens and tokens[0] == ":":
        tokens.popleft()
    return _read(tokens)


def _read(tokens: deque[str]) -> str:
    """Take a type, and what follows it up to the next comma or bracket, such as a comment."""
    word = tokens.popleft().lower() if tokens else ""
    word = _SYNONYMS.get(word, word)
    if tokens and tokens[0] == "<" and word in _NESTED:
        tokens.popleft()
        found = f"{word}<{','.join(_inner(tokens, has_names=word == 'struct'))}>"
    else:
        found = _DEFAULTS.get(simple := word + _rest(tokens), simple)
    while tokens and tokens[0] not in ",>":
        tokens.popleft()
    return found


def _inner(tokens: deque[str], *, has_names: bool) -> Iterator[str]:
    """Take the types in a bracket, and the bracket that closes it."""
    while tokens and tokens[0] != ">":
        name = f"{_unquoted(tokens.popleft())}:" if has_names else ""
        if tokens and tokens[0] == ":":
            tokens.popleft()
        yield name + _read(tokens)
        if tokens and tokens[0] == ",":
            tokens.popleft()
    if tokens:
        tokens.popleft()


def _rest(tokens: deque[str]) -> str:
    """Take what belongs to a simple type: its arguments, and the further words of an interval."""
    found = ""
    if tokens and tokens[0] == "(":
        while tokens and not found.endswith(")"):
            found += tokens.popleft()
    while tokens and tokens[0].lower() in _FURTHER:
        found += f" {tokens.popleft().lower()}"
    return found


def _unquoted(name: str) -> str:
    return name[1:-1].replace("``", "`") if name.startswith("`") else name


def _difference(one: Columns, other: Columns) -> str:
    for number, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return f"column {number + 1} is {' '.join(left)} and {' '.join(right)}"
    longer = max(one, other, key=len)
    return f"one of them has no column {longer[min(len(one), len(other))][0]}"
