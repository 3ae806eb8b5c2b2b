"""Makes ``format("balanced")`` known to Spark, which looks for ``pyspark_…`` packages.

Spark's Python workers import all such packages when a session asks for a data source for the first
time. An import that fails would take every other source with it, so that a release of Spark that is
too old is said when the source is used.
"""

try:
    from balanced_source_spark.data_source import BalancedDataSource as DefaultSource
except ImportError as error:
    from balanced_source_spark.unusable import unusable

    DefaultSource = unusable(str(error))  # type: ignore[assignment, misc]

__all__ = ["DefaultSource"]
