"""The Spark half of the hybrid source; see `SparkHalf`.

Every Python process of a query imports this module.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from balanced_source.connectors.hybrid import HybridSource
from balanced_source_spark.contract.half import AnyHalf, Choices, Query, SparkHalf, half_of
from balanced_source_spark.contract.half_answers import asked
from balanced_source_spark.contract.option_table import Option
from balanced_source_spark.contract.secrets import QuerySecrets
from balanced_source_spark.hybrid.option_names import OPTIONS
from balanced_source_spark.hybrid.options import (
    PartRead,
    given_parts,
    hybrid_secrets,
    hybrid_source,
    part_reads,
)
from balanced_source_spark.hybrid.schema import check_columns

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from balanced_source_spark.contract.hooks import PlannerContext
    from balanced_source_spark.hybrid.hooks import HybridHooks
    from balanced_source_spark.hybrid.task_reader import HybridTaskReader

Reads = tuple[PartRead, ...]


class HybridSparkHalf(SparkHalf[Reads]):
    """Sources that are read in turn."""

    def options(self) -> tuple[Option, ...]:
        return OPTIONS

    def read_options(self, options: Mapping[str, str]) -> Reads:
        return part_reads(options)

    def secrets(self, options: Mapping[str, str]) -> QuerySecrets:
        return hybrid_secrets(options)

    def notes(self, options: Mapping[str, str]) -> tuple[str, ...]:
        return tuple(
            note
            for part in given_parts(options)
            for note in asked(part.kind, part.half, "notes", part.options)
        )

    def schema(self, read: Reads) -> "StructType | str":
        schemas: list[tuple[str, StructType | str]] = [
            (part.name, asked(part.kind, half_of(part.kind), "schema", part.read)) for part in read
        ]
        check_columns(schemas)
        return schemas[0][1]

    def source(self, options: Mapping[str, str], choices: Choices) -> HybridSource:
        return hybrid_source(options, choices)

    def task_reader(self, query: Query[Reads]) -> "partial[HybridTaskReader]":
        from balanced_source_spark.contract.checked_tasks import checked_task
        from balanced_source_spark.hybrid.task_reader import HybridTaskReader

        readers = {
            part.name: partial(
                checked_task,
                part.kind,
                asked(part.kind, _ranges(part.kind), "task_reader", part_query(query, part)),
                query.schema,
            )
            for part in query.read
        }
        return partial(HybridTaskReader, readers)

    def hooks(self, context: "PlannerContext[Reads]") -> "HybridHooks":
        from balanced_source_spark.hybrid.hooks import HybridHooks

        return HybridHooks(context)


def part_query(query: Query[Reads], part: PartRead) -> Query[Any]:
    """Return what the half of a part knows of the query."""
    known: Query[Any] = replace(query, read=part.read)
    return known


def _ranges(kind: str) -> SparkHalf[Any]:
    half: AnyHalf[Any] = half_of(kind)
    assert isinstance(half, SparkHalf)  # noqa: S101 - the options were checked
    return half
