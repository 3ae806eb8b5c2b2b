"""One side of `benchmarks.bench_before`: a Spark session that reads when it is told to.

This file is started by the Python of any checkout, also of an older one, so it imports nothing of
the benchmarks. It reads one JSON command per line and answers each with one JSON line.
"""

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import psutil
from pyspark.sql import SparkSession

from balanced_source_spark.data_source import register

PLANNER: Final = "streaming_source_runner"
"""Part of the command of the Python processes that plan micro-batches."""


def main() -> None:
    """Answer commands until there are no more."""
    session = _new_session()
    calls: Mapping[str, Callable[..., dict[str, Any]]] = {"read": read, "watch": watch}
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        command = json.loads(line)
        answer = calls[command.pop("do")](session, **command)
        print(json.dumps(answer), flush=True)
    session.stop()


def _new_session() -> SparkSession:
    os.environ.update(SPARK_LOCAL_IP="127.0.0.1", PYSPARK_PYTHON=sys.executable)
    session = (
        SparkSession.builder.master("local[2]")
        .appName("bench-before")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.python.authenticate.socketTimeout", "120s")
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


def read(session: SparkSession, options: dict[str, str]) -> dict[str, Any]:
    """Read a backlog to its end; records, seconds and CPU seconds."""
    with tempfile.TemporaryDirectory() as checkpoint:
        cpu, began = _cpu(), time.monotonic()
        query = _start(session, options, checkpoint, availableNow=True)
        query.awaitTermination()
        whole, spent = time.monotonic() - began, _cpu() - cpu
        progress = [each for each in query.recentProgress if each.numInputRows]
    return {
        "rows": sum(each.numInputRows for each in progress),
        "whole": whole,
        "running": sum(each.durationMs["addBatch"] for each in progress) / 1000,
        "cpu": spent,
    }


def watch(
    session: SparkSession, options: dict[str, str], warm_up: int, batches: int
) -> dict[str, Any]:
    """Read new records as often as Spark can; CPU seconds of the planning process."""
    with tempfile.TemporaryDirectory() as checkpoint:
        query = _start(session, options, checkpoint, processingTime="0 seconds")
        _wait(query, warm_up)
        first, before = _count(query), _planner_cpu()
        _wait(query, first + batches)
        spent, read_batches = _planner_cpu() - before, _count(query) - first
        query.stop()
    return {"batches": read_batches, "planner_cpu": spent}


def _start(session: SparkSession, options: dict[str, str], checkpoint: str, **trigger: Any) -> Any:
    rows = session.readStream.format("balanced").options(**options).load()
    writer = rows.writeStream.format("noop").option("checkpointLocation", checkpoint)
    return writer.trigger(**trigger).start()


def _wait(query: Any, count: int) -> None:
    while _count(query) < count:
        if not query.isActive:
            raise RuntimeError(f"the query ended: {query.exception()}")
        time.sleep(0.05)


def _count(query: Any) -> int:
    return sum(1 for each in query.recentProgress if each.numInputRows)


def _below() -> Iterator[psutil.Process]:
    yield from psutil.Process().children(recursive=True)


def _cpu() -> float:
    """CPU seconds of this session: of living processes, and of those that they waited for."""
    total = 0.0
    for process in (psutil.Process(), *_below()):
        try:
            times = process.cpu_times()
        except psutil.Error:
            continue
        total += times.user + times.system
        if process.pid != os.getpid():
            total += times.children_user + times.children_system
    return total


def _planner_cpu() -> float:
    """CPU seconds of the process that plans, and of the one that it was forked from."""
    times = [each.cpu_times() for each in _below() if _plans(each)]
    if not times:
        raise RuntimeError("no planning process found")
    return float(sum(each.user + each.system for each in times))


def _plans(process: psutil.Process) -> bool:
    try:
        return any(PLANNER in part for part in process.cmdline())
    except psutil.Error:  # it has ended
        return False


if __name__ == "__main__":
    main()
