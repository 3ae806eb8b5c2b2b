"""``format("balanced")``: the entry point that Spark knows.

Spark starts four kinds of Python process for a source: for its schema, for pickling its reader, for planning, and for
tasks. All of them load this module; what they need beyond it they load themselves.
"""

from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType


class BalancedDataSource(DataSource):
    """A source whose splits stay evenly spread over its readers."""

    @classmethod
    def name(cls) -> str:
        return "balanced"

    def schema(self) -> StructType | str:
        from balanced_source_spark.contract.half import half_of
        from balanced_source_spark.options import parse_options

        options = parse_options(self.options)
        return half_of(options.connector).schema(options.read)

    def reader(self, schema: StructType) -> Any:
        from balanced_source_spark.batch_reader import BalancedBatchReader
        from balanced_source_spark.options import parse_options

        return BalancedBatchReader(parse_options(self.options, is_batch=True))

    def streamReader(self, schema: StructType) -> Any:
        from balanced_source_spark.options import parse_options
        from balanced_source_spark.stream_reader import BalancedStreamReader

        return BalancedStreamReader(parse_options(self.options))


def register(spark: SparkSession) -> None:
    """Make ``format("balanced")`` known to a session."""
    spark.dataSource.register(BalancedDataSource)
