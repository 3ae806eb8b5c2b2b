"""Checks that rows of a connector have the columns of their query, before they count as read.

Spark checks the first batch of a task by itself, when its range may be sealed already, and says
nothing of the connector. It takes the other batches as they are. Imported by tasks, so it imports
little.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa

from balanced_source.errors import ContractViolationError, InvalidSpecError
from balanced_source.names import shown
from balanced_source_spark.contract.ddl import check_names, columns_of

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

Columns: TypeAlias = "StructType | None"
"""Columns of a query; None if they are unknown."""

Schema: TypeAlias = "Callable[[], StructType | str]"
"""Returns what `schema` of the connector's Spark half returns."""

_DO: Final = (
    "Return rows that have the columns of schema, in the same order and with the same types"
)


class RowColumns:
    """Checks the batches of one task.

    Args:
        declared: columns of the query; None if they are unknown: nothing is checked then.
        made_by: what returns the rows, for messages.
        schema: asked if rows have other columns; None if the connector's own columns are unknown.
    """

    def __init__(self, declared: "Columns", made_by: str, schema: "Schema | None" = None) -> None:
        self._schema = schema
        self._declared = declared
        self._made_by = made_by
        self._expected: pa.Schema | None = None
        self._strict: list[pa.Field] = []

    def check(self, batch: pa.RecordBatch) -> None:
        """Check columns and missing values of a batch. Costs little if they are right.

        Raises:
            ContractViolationError: Spark could not take the rows.
            InvalidSpecError: it could not, because the user has set other columns.
        """
        if self._declared is None:
            return
        expected = self._expected or self._expect(self._declared)
        found = batch.schema
        if not found.equals(expected):
            self._check_query(expected.names, found.names)
            raise ContractViolationError(
                f"{self._made_by} returned rows {self._difference(expected, found)}. {_DO}"
            )
        for name in missing_values(batch, self._strict):
            raise ContractViolationError(
                f"{self._made_by} returned rows in which {shown(name)} is None, and schema"
                " declares it as NOT NULL. Return a value in each row, or declare it without"
                " NOT NULL"
            )

    def _check_query(self, declared: list[str], found: list[str]) -> None:
        """Check that the columns of the query are those of the connector.

        Raises:
            InvalidSpecError: the rows are as the connector declares them, and the query is not.
        """
        if self._schema is None or declared == found:
            return
        own = self._schema()
        if found != ([n for n, _ in columns_of(own)] if isinstance(own, str) else own.names):
            return
        raise InvalidSpecError(
            f"the query sets the columns {', '.join(declared)} by .schema(...), and its connector"
            f" returns {', '.join(found)}. Set these columns, or leave out .schema(...), and select"
            " columns afterwards",
            field="schema",
        )

    def _expect(self, declared: "StructType") -> pa.Schema:
        """Note what rows must have."""
        try:
            check_names(declared.names)
        except ValueError as error:
            raise ContractViolationError(f"schema is invalid: {error}") from error
        self._expected = expected = _arrow(declared)
        self._strict = strict_fields(expected)
        return expected

    def _difference(self, expected: pa.Schema, found: pa.Schema) -> str:
        """Return what is wrong, as words that follow "rows"."""
        if missing := [name for name in expected.names if name not in found.names]:
            return (
                f"without column {shown(missing[0])}, which is declared as {self._type(missing[0])}"
            )
        if more := [name for name in found.names if name not in expected.names]:
            return f"with column {shown(more[0])}, which is not declared"
        if found.names != expected.names:
            return (
                f"with the columns {', '.join(found.names)}, and declared are"
                f" {', '.join(expected.names)}"
            )
        wrong = next(name for name in expected.names if found.field(name) != expected.field(name))
        return (
            f"in which column {shown(wrong)} is {_shape(found.field(wrong))}, and declared is"
            f" {self._type(wrong)}: {_shape(expected.field(wrong))}"
        )

    def _type(self, name: str) -> str:
        assert self._declared is not None  # noqa: S101 - `check` has looked
        return self._declared[name].dataType.simpleString()


def strict_fields(schema: pa.Schema) -> list[pa.Field]:
    """Return the columns in which a value, or a part of it, must not be missing."""
    return [field for field in schema if _is_strict(field)]


def missing_values(batch: pa.RecordBatch, strict: Iterable[pa.Field]) -> Iterator[str]:
    """Yield the names of what is None in a batch and must not be."""
    for field in strict:
        yield from _missing(batch.column(field.name), field, field.name)


def _arrow(declared: "StructType") -> pa.Schema:
    """Return what Spark compares with."""
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(declared, timezone="UTC")


def _is_strict(field: pa.Field) -> bool:
    """Whether a value of a column, or a part of it, must not be missing."""
    return not field.nullable or any(map(_is_strict, _inner(field.type)))


def _inner(kind: pa.DataType) -> list[pa.Field]:
    """Return the fields of the values in a struct, array or map. Keys of a map are never None."""
    if pa.types.is_struct(kind):
        return list(kind)
    if pa.types.is_map(kind):
        return [kind.item_field]
    return [kind.value_field] if pa.types.is_list(kind) or pa.types.is_large_list(kind) else []


def _missing(values: Any, field: pa.Field, name: str) -> Iterator[str]:
    """Yield the names of what is None and must not be. Parts of a None do not count."""
    if not field.nullable and values.null_count:
        yield name
    if not any(map(_is_strict, inner := _inner(field.type))):
        return
    present = values.drop_null()
    if pa.types.is_struct(field.type):
        for number, own in enumerate(inner):
            yield from _missing(present.field(number), own, f"{name}.{own.name}")
    elif pa.types.is_map(field.type):
        begin, end = (present.offsets[at].as_py() for at in (0, -1))
        # Arrow has values before and behind the rows of a slice, too.
        yield from _missing(present.items[begin:end], inner[0], f"{name}.value")
    else:
        yield from _missing(present.flatten(), inner[0], f"{name}.element")


def _shape(field: pa.Field) -> str:
    return f"{field.type}{'' if field.nullable else ' not null'}"
