"""Which queries keep state, by the logical plans of a real Spark."""

from collections.abc import Callable

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from balanced_source_spark.query_state import stateful_operation

pytestmark = pytest.mark.integration


def stream(spark: SparkSession) -> DataFrame:
    return spark.readStream.format("rate").load()


def totals(spark: SparkSession) -> DataFrame:
    """A static table that is aggregated."""
    return spark.range(3).groupBy(f.col("id").alias("value")).count()


Query = Callable[[SparkSession], DataFrame]

STATELESS: dict[str, Query] = {
    "columns": lambda s: stream(s).select("value").where("value > 1"),
    "join with a table": lambda s: stream(s).join(totals(s), "value"),
    "union": lambda s: stream(s).union(stream(s)),
}
STATEFUL: dict[str, Query] = {
    "count": lambda s: stream(s).groupBy("value").count(),
    "windows": lambda s: stream(s).groupBy(f.window("timestamp", "1 minute")).count(),
    "sessions": lambda s: stream(s).groupBy(f.session_window("timestamp", "1 minute")).count(),
    "distinct": lambda s: stream(s).distinct(),
    "duplicates": lambda s: stream(s).dropDuplicates(["value"]),
    "duplicates in time": lambda s: (
        stream(s).withWatermark("timestamp", "1 minute").dropDuplicatesWithinWatermark(["value"])
    ),
    "join": lambda s: stream(s).join(stream(s).withColumnRenamed("timestamp", "t"), "value"),
    "limit": lambda s: stream(s).limit(3),
}


@pytest.mark.parametrize("name", STATELESS)
def test_a_query_without_state_may_run_on_several_hosts(spark: SparkSession, name: str) -> None:
    assert stateful_operation(STATELESS[name](spark)) is None


@pytest.mark.parametrize("name", STATEFUL)
def test_a_query_that_keeps_state_is_found(spark: SparkSession, name: str) -> None:
    assert stateful_operation(STATEFUL[name](spark)) is not None
