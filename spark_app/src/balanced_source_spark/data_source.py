"""``format("balanced")``: the entry point that Spark knows.

Spark starts four kinds of Python process for a source: for its schema, for pickling its reader, for
planning, and for tasks. All of them load this module; what they need beyond it they load
themselves.
"""

import sys
from typing import Any, Final

import pyspark

from balanced_source_spark.plain_errors import plain_errors
from balanced_source_spark.quick_imports import quick_imports
from balanced_source_spark.spark_version import check_spark_version

check_spark_version(pyspark.__version__)

from pyspark.errors import AnalysisException  # noqa: E402 - older releases have no data sources
from pyspark.sql import SparkSession  # noqa: E402
from pyspark.sql.datasource import DataSource  # noqa: E402
from pyspark.sql.types import StructType  # noqa: E402

_IS_KNOWN: Final = "DATA_SOURCE_ALREADY_EXISTS"


class BalancedDataSource(DataSource):
    """A source whose splits stay evenly spread over its readers."""

    @classmethod
    def name(cls) -> str:
        return "balanced"

    @plain_errors()
    def schema(self) -> StructType | str:
        from balanced_source_spark.contract.half import half_of
        from balanced_source_spark.contract.half_answers import asked
        from balanced_source_spark.options import parse_options

        options = parse_options(self.options)
        half = half_of(options.connector)
        found: StructType | str = asked(options.connector, half, "schema", options.read)
        return found

    @plain_errors()
    def reader(self, schema: StructType) -> Any:
        from balanced_source_spark.batch_reader import BalancedBatchReader
        from balanced_source_spark.options import parse_options

        return BalancedBatchReader(parse_options(self.options, is_batch=True, schema=schema))

    def streamReader(self, schema: StructType) -> Any:
        """Return a reader that fails where there can be no other one: see `FailedReader`."""
        with quick_imports():
            from balanced_source_spark.options import parse_options
            from balanced_source_spark.stream_reader import BalancedStreamReader

            try:
                return BalancedStreamReader(parse_options(self.options, schema=schema))
            except Exception as error:  # noqa: BLE001 - raised by the reader
                from balanced_source_spark.failed_reader import FailedReader

                return FailedReader(error)


def register(spark: SparkSession) -> None:
    """Make ``format("balanced")`` known to a session, if Spark has not found it by itself.

    Spark finds it (see `pyspark_balanced`) if the Python of its workers has this package. If that
    Python has not, the source that this function registers says so.
    """
    try:
        # Spark finds the package by itself where it can, and then refuses the second registration.
        spark.dataSource.register(_explaining(sys.executable))
    except AnalysisException as error:
        if error.getCondition() != _IS_KNOWN:
            raise


def _explaining(driver: str) -> type[DataSource]:
    """Return a source that explains itself where this package is missing: it is pickled by value.

    Args:
        driver: the Python that has the package.
    """

    class Balanced(DataSource):
        @classmethod
        def name(cls) -> str:
            return "balanced"

        def _source(self) -> Any:
            try:
                from balanced_source_spark.data_source import BalancedDataSource as Found
            except ModuleNotFoundError as error:
                import os
                import sys as this

                os.environ["SPARK_HIDE_TRACEBACK"] = "1"
                raise ModuleNotFoundError(
                    f"the Python of Spark's workers, {this.executable}, has no module {error.name}:"
                    " install balanced-source[spark] there, or set the environment variable"
                    f" PYSPARK_PYTHON (or spark.pyspark.python) to {driver} before Spark starts"
                ) from None
            return Found(self.options)

        def schema(self) -> StructType | str:
            found: StructType | str = self._source().schema()
            return found

        def reader(self, schema: StructType) -> Any:
            return self._source().reader(schema)

        def streamReader(self, schema: StructType) -> Any:
            return self._source().streamReader(schema)

    return Balanced
