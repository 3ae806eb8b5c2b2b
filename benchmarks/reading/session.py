"""Queries of one Spark session: a backlog read to its end, or a stream watched for a while."""

import os
import sys
import tempfile
import time
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from balanced_source_spark.data_source import register
from benchmarks.reading.contestants import Contestant
from benchmarks.reading.cost import Cost
from testbed.jars import ensure_jars
from testbed.kafka import KafkaCluster

SLOTS: Final = 2

FIRST: Final = 60.0
"""Seconds in which a stream's first micro-batch has to finish."""


def new_session() -> SparkSession:
    """With both sources, and settings that both are meant to be run with."""
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["PYSPARK_PYTHON"] = sys.executable
    jars = ",".join(str(jar) for jar in sorted(ensure_jars("spark-kafka").glob("*.jar")))
    session = (
        SparkSession.builder.master(f"local[{SLOTS}]")
        .appName("bench-read")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.python.authenticate.socketTimeout", "120s")  # a busy machine
        .config("spark.jars", jars)
        .config("spark.driver.memory", "2g")
        .config("spark.sql.streaming.numRecentProgressUpdates", "10000")
        .config("spark.python.unix.domain.socket.enabled", "true")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    register(session)
    return session


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """One reading of everything; seconds, records and megabytes."""

    rows: int
    whole: float
    running: float
    cpu: float
    python_mb: float
    jvm_mb: float


def read_backlog(
    spark: SparkSession,
    kafka: KafkaCluster,
    topic: str,
    contestant: Contestant,
    *,
    readers: int,
    ignored: frozenset[int],
) -> Backlog:
    """From the first record to the last, into nothing; processes that are `ignored` do not count as ours."""
    options = {**contestant.settings(kafka, topic, readers=readers), "startingOffsets": "earliest"}
    with Cost(ignored=ignored) as cost, tempfile.TemporaryDirectory() as checkpoint:
        began = time.monotonic()
        rows = spark.readStream.format(contestant.format).options(**options).load()
        query = (
            rows.writeStream.format("noop").option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
        )
        query.awaitTermination()
        whole = time.monotonic() - began
        progress = [p for p in query.recentProgress if p.numInputRows]
    return Backlog(
        rows=sum(p.numInputRows for p in progress),
        whole=whole,
        running=sum(p.durationMs["addBatch"] for p in progress) / 1000,
        cpu=cost.cpu,
        python_mb=cost.python_mb,
        jvm_mb=cost.jvm_mb,
    )


def watch_stream(
    spark: SparkSession,
    kafka: KafkaCluster,
    topic: str,
    contestant: Contestant,
    *,
    readers: int,
    seconds: float,
    ignored: frozenset[int],
) -> dict[str, Any]:
    """Read new records for `seconds` after the first micro-batch, as often as Spark can; milliseconds."""
    options = contestant.settings(kafka, topic, readers=readers)
    with Cost(ignored=ignored) as cost, tempfile.TemporaryDirectory() as checkpoint:
        millis = f.unix_millis("timestamp")
        rows = spark.readStream.format(contestant.format).options(**options, startingOffsets="latest").load()
        observed = rows.observe("seen", f.min(millis).alias("oldest"), f.max(millis).alias("newest"))
        query = observed.writeStream.format("noop").option("checkpointLocation", checkpoint).start()
        _await_rows(query, FIRST)
        query.awaitTermination(int(seconds))
        progress = [p for p in query.recentProgress if p.numInputRows]
        error = query.exception()
        query.stop()
    if error is not None:
        raise RuntimeError(f"{contestant.name} failed: {error}")
    settled = progress[len(progress) // 4 :] if len(progress) > 8 else progress
    return {
        "batches": len(progress),
        "rows": sum(p.numInputRows for p in progress),
        "trigger": [p.durationMs["triggerExecution"] for p in settled],
        "addBatch": [p.durationMs["addBatch"] for p in settled],
        "latency": [_latency(p) for p in settled],
        "cpu": cost.cpu,
        "python_mb": cost.python_mb,
        "jvm_mb": cost.jvm_mb,
    }


def _await_rows(query: Any, patience: float) -> None:
    """The start of a query is not what is measured; a source that never finishes a micro-batch has had its chance."""
    deadline = time.monotonic() + patience
    while query.isActive and time.monotonic() < deadline:
        if any(p.numInputRows for p in query.recentProgress):
            return
        time.sleep(0.1)


def _latency(progress: Any) -> float:
    """Age of the oldest record when its micro-batch was committed."""
    began = _millis(progress.timestamp)
    return began + float(progress.durationMs["triggerExecution"]) - float(progress.observedMetrics["seen"].oldest)


def _millis(text: str) -> float:
    from datetime import datetime

    return datetime.fromisoformat(text).timestamp() * 1000
