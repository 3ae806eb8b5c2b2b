"""Streaming queries in tests: rows collected per micro-batch, waits with deadlines."""

import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.functions import spark_partition_id
from pyspark.sql.streaming.query import StreamingQuery

from testbed.waiting import wait_until

Record = tuple[str, int, int]
"""Topic, partition, offset."""


class Collector:
    """A sink for `foreachBatch`.

    Keeps the rows of each micro-batch, replacing those of an earlier attempt at it.
    """

    def __init__(self) -> None:
        self.batches: dict[int, list[Row]] = {}
        self.attempts: Counter[int] = Counter()
        self.fail_before: Callable[[int], bool] = lambda _: False
        self.fail_after: Callable[[int], bool] = lambda _: False
        self._lock = threading.Lock()

    def __call__(self, rows: DataFrame, number: int) -> None:
        with self._lock:
            self.attempts[number] += 1
            if self.fail_before(number):
                raise RuntimeError(f"batch {number} fails before it is written")
            self.batches[number] = rows.withColumn("task", spark_partition_id()).collect()
            if self.fail_after(number):
                raise RuntimeError(f"batch {number} fails after it is written")

    @property
    def rows(self) -> list[Row]:
        return [row for number in sorted(self.batches) for row in self.batches[number]]

    @property
    def records(self) -> Counter[Record]:
        return Counter((row.topic, row.partition, row.offset) for row in self.rows)

    def tasks(self, number: int) -> dict[tuple[str, int], int]:
        """Which task read each partition in a micro-batch."""
        return {(row.topic, row.partition): row.task for row in self.batches[number]}


def start(
    spark: SparkSession,
    sink: Any,
    checkpoint: Path,
    *,
    trigger: dict[str, Any] | None = None,
    **options: str,
) -> StreamingQuery:
    """Start a query on ``format("balanced")``."""
    rows = spark.readStream.format("balanced").options(**options).load()
    writer = rows.writeStream.foreachBatch(sink).option("checkpointLocation", str(checkpoint))
    return writer.trigger(**(trigger or {"processingTime": "100 milliseconds"})).start()


def wait_for(
    query: StreamingQuery, condition: Callable[[], bool], timeout: float, what: str
) -> None:
    """Wait for what a query does; one that failed says why."""

    def holds() -> bool:
        if (error := query.exception()) is not None:
            raise AssertionError(f"the query failed: {error}")
        return condition()

    wait_until(holds, timeout, what)


def wait_rows(query: StreamingQuery, sink: Collector, count: int, timeout: float = 60) -> None:
    """Wait until so many rows have arrived; a query that failed says why."""
    wait_for(query, lambda: len(sink.rows) >= count, timeout, f"{count} rows")


def wait_failed(query: StreamingQuery, timeout: float = 60) -> str:
    """Wait until the query has failed; returns why."""
    wait_until(lambda: query.exception() is not None, timeout, "the query to fail")
    return str(query.exception())
