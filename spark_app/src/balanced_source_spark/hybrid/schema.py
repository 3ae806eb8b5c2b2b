"""Compares the columns of parts.

All parts have the same columns, with the same names and types, in the same order.
"""

from collections.abc import Iterable
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
}
"""Spark's other words for simple types."""

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
    """Return the type in a column of DDL, such as ``id BIGINT NOT NULL``."""
    rest = text[len(name) + 2 :] if text.startswith("`") else text[len(name) :]
    words = rest.replace(":", " ", 1).lower().split(" comment ")[0].replace(" not null", "")
    spelled = "".join(words.split())
    return _SYNONYMS.get(spelled, spelled)


def _difference(one: Columns, other: Columns) -> str:
    for number, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return f"column {number + 1} is {' '.join(left)} and {' '.join(right)}"
    longer = max(one, other, key=len)
    return f"one of them has no column {longer[min(len(one), len(other))][0]}"
