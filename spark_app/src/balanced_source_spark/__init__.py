"""The Spark side: a Python data source whose readers take their splits from the enumerator.

All that a program needs is here. The functions load what they use, since Spark's processes import this package often.
"""

from typing import Any

__all__ = ["register", "rescale"]


def register(spark: Any) -> None:
    """Make ``format("balanced")`` known to a session, if Spark has not found it by itself."""
    from balanced_source_spark.data_source import register as really

    really(spark)


def rescale(query: Any, parallelism: int, *, timeout: float = 60.0) -> None:
    """Set the number of readers of a running query; see `balanced_source_spark.rescaling.rescale`."""
    from balanced_source_spark.rescaling import rescale as really

    really(query, parallelism, timeout=timeout)
