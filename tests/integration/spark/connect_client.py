"""A program that uses Spark Connect, without a JVM and without test code.

``python … URL BROKERS TOPIC FOLDER``.

FOLDER is on the server. It writes a line of JSON per step. Before the stream is counted, it waits
for a line on its standard input.
"""

import json
import sys
import time
from collections.abc import Callable
from typing import Any

from pyspark.sql import SparkSession

from balanced_source_spark import register, rescale

PATIENCE = 240
"""Seconds for each step: the machine may do other things too."""


def wait_until(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {PATIENCE} s for {what}")
        time.sleep(0.2)


def say(**fields: Any) -> None:
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


def readers(query: Any) -> int | None:
    """The number of readers of the last micro-batch."""
    progress = query.lastProgress
    end = progress.sources[0].endOffset if progress is not None else None
    found: int | None = json.loads(end).get("parallelism") if end else None
    return found


def stream(spark: Any, source: Any) -> None:
    """Rescale a query twice, then count what it has read."""
    memory = source.load().writeStream.format("memory").queryName("orders")
    query = memory.trigger(processingTime="200 milliseconds").start()
    try:
        for parallelism in (3, 2):
            wait_until(lambda: readers(query) is not None, "a micro-batch")
            rescale(query, parallelism)
            wait_until(
                lambda parallelism=parallelism: readers(query) == parallelism,
                f"{parallelism} readers",
            )
            say(step="rescaled", readers=parallelism)
        wanted = int(sys.stdin.readline())
        wait_until(lambda: spark.table("orders").count() >= wanted, f"{wanted} rows")
        offsets = spark.table("orders").select("partition", "offset")
        say(step="stream", rows=offsets.count(), distinct=offsets.distinct().count())
    finally:
        query.stop()


def each_batch(spark: Any, source: Any, folder: str) -> None:
    """Write micro-batches with a function that the server runs, and rescale that query."""

    def write(rows: Any, batch: int) -> None:
        rows.select("partition", "offset").write.mode("overwrite").parquet(
            f"{folder}/batch={batch}"
        )

    writer = (
        source.load()
        .writeStream.foreachBatch(write)
        .option("checkpointLocation", f"{folder}-checkpoint")
    )
    query = writer.trigger(processingTime="200 milliseconds").start()
    try:
        wait_until(lambda: readers(query) is not None, "a micro-batch")
        rescale(query, 3)
        wait_until(lambda: readers(query) == 3, "3 readers")
    finally:
        query.stop()
    offsets = spark.read.parquet(folder).select("partition", "offset")
    say(step="foreachBatch", rows=offsets.count(), distinct=offsets.distinct().count())


def main(url: str, brokers: str, topic: str, folder: str) -> None:
    spark: Any = SparkSession.builder.remote(url).getOrCreate()
    given = {"kafka.bootstrap.servers": brokers, "startingOffsets": "earliest", "parallelism": "1"}
    register(spark)
    batch = spark.read.format("balanced").options(**given, subscribe=topic).load()
    say(step="batch", rows=batch.count(), columns=batch.columns)
    try:
        spark.read.format("balanced").options(**given, subscribe="no-such-topic").load().count()
    except Exception as error:  # noqa: BLE001 - what a user sees
        say(step="error", text=str(error))
    source = spark.readStream.format("balanced").options(**given, subscribe=topic)
    stream(spark, source)
    each_batch(spark, source, folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
