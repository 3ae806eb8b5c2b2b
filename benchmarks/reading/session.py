"""Queries of one Spark session: a backlog read to its end, or a stream watched for a while."""

import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from balanced_source_spark.data_source import register
from benchmarks.reading.contestants import Contestant
from benchmarks.reading.cost import Cost
from testbed.jars import ensure_jars
from testbed.kafka import KafkaCluster

SLOTS: Final = 2

WARM: Final = 20
"""Micro-batches of a stream before those that are measured: the start of a query and a cold JVM are
not the subject."""

CONSUMERS: Final = 11_000
"""Consumers that Spark's own source keeps in an executor: 1.1 times the partitions of the largest
topic that it might read. With Spark's default of 64, a topic of more partitions can make it close
consumers and create them again in each micro-batch."""

WARM_UP: Final = 60.0
"""Seconds after which measuring begins in any case."""


def new_session(*, has_kafka: bool = True) -> SparkSession:
    """With our source and Spark's own, and settings that both are meant to be run with.

    Args:
        has_kafka: whether Spark's Kafka source is needed: its jars are fetched.
    """
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["PYSPARK_PYTHON"] = sys.executable
    found = sorted(ensure_jars("spark-kafka").glob("*.jar")) if has_kafka else []
    jars = ",".join(str(jar) for jar in found)
    session = (
        SparkSession.builder.master(f"local[{SLOTS}]")
        .appName("bench-read")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.python.authenticate.socketTimeout", "120s")  # a busy machine
        .config("spark.jars", jars)
        .config("spark.driver.memory", "2g")
        .config("spark.kafka.consumer.cache.capacity", str(CONSUMERS))
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
    jvm_cpu: float
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
    """From the first record to the last, into nothing.

    Processes that are `ignored` do not count as ours.
    """
    options = {**contestant.settings(kafka, topic, readers=readers), "startingOffsets": "earliest"}

    def load() -> DataFrame:
        rows = spark.readStream.format(contestant.format).options(**options).load()
        return rows.select(*contestant.columns) if contestant.columns else rows

    return read_to_end(load, ignored=ignored)


def read_to_end(load: Callable[[], DataFrame], *, ignored: frozenset[int] = frozenset()) -> Backlog:
    """Read what `load` makes with trigger `AvailableNow`, into nothing."""
    with Cost(ignored=ignored) as cost, tempfile.TemporaryDirectory() as checkpoint:
        began = time.monotonic()
        query = (
            load()
            .writeStream.format("noop")
            .option("checkpointLocation", checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        whole = time.monotonic() - began
    progress = _batches(query)
    return Backlog(
        rows=sum(p.numInputRows for p in progress),
        whole=whole,
        running=sum(p.durationMs["addBatch"] for p in progress) / 1000,
        cpu=cost.cpu,
        jvm_cpu=cost.jvm_cpu,
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
    """Read new records as often as Spark can; what is told is of `seconds` after the warm-up.

    Times in milliseconds.
    """
    options = contestant.settings(kafka, topic, readers=readers)
    with tempfile.TemporaryDirectory() as checkpoint:
        millis = f.unix_millis("timestamp")
        rows = (
            spark.readStream.format(contestant.format)
            .options(**options, startingOffsets="latest")
            .load()
        )
        observed = rows.observe(
            "seen", f.min(millis).alias("oldest"), f.max(millis).alias("newest")
        )
        query = observed.writeStream.format("noop").option("checkpointLocation", checkpoint).start()
        warm_up = _warm_up(query)
        before = len(_batches(query))
        with Cost(ignored=ignored) as cost:
            query.awaitTermination(int(seconds))
        progress = _batches(query)[before:]
        error = query.exception()
        query.stop()
    if error is not None:
        raise RuntimeError(f"{contestant.name} failed: {error}")
    return {
        "warm_up": warm_up,
        "batches": len(progress),
        "rows": sum(p.numInputRows for p in progress),
        "trigger": _sums(progress, "triggerExecution"),
        "addBatch": _sums(progress, "addBatch"),
        "planning": _sums(progress, "latestOffset", "getBatch", "queryPlanning"),
        # Spark's own, on this disk; no one can save them
        "logs": _sums(progress, "walCommit", "commitOffsets"),
        "latency": [_latency(p) for p in progress],
        "cpu": cost.cpu,
        "python_mb": cost.python_mb,
        "jvm_mb": cost.jvm_mb,
    }


def _sums(progress: list[Any], *steps: str) -> list[int]:
    """Milliseconds of these steps, of each micro-batch."""
    return [sum(p.durationMs.get(step, 0) for step in steps) for p in progress]


def _warm_up(query: Any) -> float:
    """Wait for `WARM` micro-batches, for every contestant alike.

    A source that makes none has had its chance.
    """
    began = time.monotonic()
    while query.isActive and time.monotonic() - began < WARM_UP and len(_batches(query)) < WARM:
        time.sleep(0.2)
    return time.monotonic() - began


def _batches(query: Any) -> list[Any]:
    """Progress of the micro-batches that had rows."""
    return [p for p in query.recentProgress if p.numInputRows]


def _latency(progress: Any) -> float:
    """Age of the oldest record when its micro-batch was committed."""
    began = _millis(progress.timestamp)
    return (
        began
        + float(progress.durationMs["triggerExecution"])
        - float(progress.observedMetrics["seen"].oldest)
    )


def _millis(text: str) -> float:
    from datetime import datetime

    return datetime.fromisoformat(text).timestamp() * 1000
