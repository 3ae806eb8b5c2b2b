"""A transform in which records take a fixed time.

The capacity of a reader then hardly depends on the machine. The driver alone needs this module:
what the executors run is an expression of Spark.
"""

from typing import Final

from pyspark.sql import DataFrame

RECORDS: Final = 50
"""One record of so many waits for all of them: short pauses last longer on a busy machine."""

MILLIS: Final = 100
"""That it waits: a reader processes at most 500 records per second."""


def pause(rows: DataFrame) -> DataFrame:
    """Return all rows, the task having waited for some of them."""
    wait = f"reflect('java.lang.Thread', 'sleep', {MILLIS}L) IS NOT NULL"
    return rows.where(f"offset % {RECORDS} <> 0 OR {wait}")
