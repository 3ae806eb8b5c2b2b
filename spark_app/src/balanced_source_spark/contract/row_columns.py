"""Checks that rows of a connector have the columns of their query, before they count as read.

Spark checks the first batch of a task by itself, when its range may be sealed already, and says
nothing of the connector. It takes the other batches as they are. Imported by tasks, so it imports
little.
"""

from typing import TYPE_CHECKING, Final, TypeAlias

import pyarrow as pa

from balanced_source.errors import ContractViolationError
from balanced_source.names import shown

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

Columns: TypeAlias = "StructType | None"
"""Columns of a query; None if they are unknown."""

_DO: Final = (
    "Return rows that have the columns of schema, in the same order and with the same types"
)


class RowColumns:
    """Checks the batches of one task.

    Args:
        declared: columns of the query; None if they are unknown: nothing is checked then.
        made_by: what returns the rows, for messages.
    """

    def __init__(self, declared: "Columns", made_by: str) -> None:
        self._declared = declared
        self._made_by = made_by
        self._expected: pa.Schema | None = None

    def check(self, batch: pa.RecordBatch) -> None:
        """Check the columns of a batch. Costs little if they are right.

        Raises:
            ContractViolationError: Spark could not take the rows.
        """
        if self._declared is None:
            return
        if self._expected is None:
            self._expected = _arrow(self._declared)
        found = batch.schema
        if not found.equals(self._expected):
            raise ContractViolationError(
                f"{self._made_by} returned rows {self._difference(self._expected, found)}. {_DO}"
            )

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


def _arrow(declared: "StructType") -> pa.Schema:
    """Return what Spark compares with."""
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(declared, timezone="UTC")


def _shape(field: pa.Field) -> str:
    return f"{field.type}{'' if field.nullable else ' not null'}"
