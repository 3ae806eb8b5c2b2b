"""The Spark side: a Python data source whose readers take their splits from the enumerator.

All that a program needs is here. The functions load what they use, since Spark's processes import
this package often.
"""

from typing import Any

__all__ = ["__version__", "register", "rescale", "stop_when_finished"]


def __getattr__(name: str) -> Any:
    """Look up the version when it is asked for: few processes of a query ask."""
    if name == "__version__":
        from balanced_source_adapters.version import installed_version

        return installed_version()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def register(spark: Any) -> None:
    """Make ``format("balanced")`` known to a session, if Spark has not found it by itself."""
    from balanced_source_spark.data_source import register as really

    really(spark)


def rescale(query: Any, parallelism: int, *, timeout: float = 60.0) -> None:
    """Set the number of readers of a running query.

    See `balanced_source_spark.rescaling.rescale`.
    """
    from balanced_source_spark.rescaling import rescale as really

    really(query, parallelism, timeout=timeout)


def stop_when_finished(query: Any) -> None:
    """End a streaming query when its source, which has an end, is read to it.

    Without it, only a query with ``trigger(availableNow=True)`` ends by itself. See
    `balanced_source_spark.progress.stop_when_finished`.
    """
    from balanced_source_spark.progress import stop_when_finished as really

    really(query)
