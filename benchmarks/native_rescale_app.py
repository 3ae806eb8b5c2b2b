"""The rival's application.

Spark's own Kafka source, stopped and started again to change its number of partitions.

Runs in the driver's pod. Reads the wanted number from a file, writes one JSON line per finished
micro-batch (the form of our packaged application's log), and `minPartitions` is the nearest thing
that the native source has to parallelism.
"""

import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener

CONTROL, SINK, CHECKPOINT = (
    Path("/data/native-parallelism"),
    "/data/native",
    "/data/checkpoints/native",
)


class Progress(StreamingQueryListener):
    """Writes a line per micro-batch."""

    def onQueryStarted(self, event: Any) -> None:
        """Nothing to say."""

    def onQueryProgress(self, event: Any) -> None:
        """One line."""
        progress = event.progress
        line = {
            "event": "batch",
            "batch": progress.batchId,
            "at": progress.timestamp,
            "rows": progress.numInputRows,
            "durations": dict(progress.durationMs),
            "sources": [{"epoch": 0, "parallelism": int(progress.name)}],
        }
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()

    def onQueryIdle(self, event: Any) -> None:
        """Nothing to say."""

    def onQueryTerminated(self, event: Any) -> None:
        """Nothing to say."""


def wanted() -> int:
    """Number of partitions that is asked for."""
    return int(CONTROL.read_text())


def main(bootstrap: str, topics: str, fetch_wait: str) -> None:
    """Start, and start again whenever the number changes."""
    spark = SparkSession.builder.getOrCreate()
    spark.streams.addListener(Progress())
    while True:
        number = wanted()
        rows = (
            spark.readStream.format("kafka")
            .option("kafka.bootstrap.servers", bootstrap)
            .option("subscribe", topics)
            .option("startingOffsets", "earliest")
            .option("minPartitions", number)
            .option("kafka.fetch.max.wait.ms", fetch_wait)
            .load()
        )
        query = (
            rows.writeStream.queryName(str(number))
            .format("parquet")
            .option("path", SINK)
            .option("checkpointLocation", CHECKPOINT)
            .trigger(processingTime="500 milliseconds")
            .start()
        )
        changed = threading.Event()
        while not changed.is_set() and query.isActive:
            if wanted() != number:
                changed.set()
            time.sleep(0.02)
        query.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
