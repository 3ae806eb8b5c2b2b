"""Flink on the same topic.

SQL from its Kafka source into a sink that drops all, on a cluster that is up already.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from benchmarks.reading.contestants import TEN_MS, TUNED
from benchmarks.reading.cost import Cost
from benchmarks.reading.session import SLOTS, Backlog
from testbed.errors import TestbedError
from testbed.flink.cluster import FlinkCluster
from testbed.flink.install import ensure_flink
from testbed.flink.sql import SqlSession
from testbed.kafka import KafkaCluster
from testbed.progress import Progress

FLINK: Final = "flink, 10 ms"
FLINK_TUNED: Final = "flink, tuned"

PROPERTIES: Final[Mapping[str, Mapping[str, str]]] = {FLINK: TEN_MS, FLINK_TUNED: TUNED}
"""Consumer properties of each Flink contestant, as `make bench-tune` left them."""

SETTINGS: Final = {"pipeline.object-reuse": "true", "pipeline.name": "bench-read"}

COLUMNS: Final = {
    "key": "BYTES",
    "value": "BYTES",
    "topic": "STRING",
    "partition": "INT",
    "offset": "BIGINT",
    "timestamp": "TIMESTAMP_LTZ(3)",
    "timestamp-type": "STRING",
}
"""What Spark's own source gives."""


@contextmanager
def flink_cluster(
    folder: Path, progress: Progress, *, slots: int = SLOTS * 2
) -> Iterator[FlinkCluster | None]:
    """A cluster, or None and a line that says why, if its packages cannot be had."""
    try:
        flink = ensure_flink(progress=progress)
    except TestbedError as error:
        progress.line(f"without Flink: {str(error).splitlines()[0]}")
        yield None
        return
    with FlinkCluster(flink, folder, slots=slots, progress=progress) as cluster:
        yield cluster


def read_backlog(
    flink: FlinkCluster,
    kafka: KafkaCluster,
    topic: str,
    *,
    readers: int,
    properties: Mapping[str, str],
) -> Backlog:
    """From the first record to the last; rows are those that the reading tasks have counted.

    `whole` begins with the first statement and ends when the job is seen to have finished, as a
    query of Spark does; `running` is what the job manager tells of the tasks, from their deployment
    on.
    """
    with Cost(roots=flink.pids) as cost, SqlSession(flink.gateway, flink.jobs) as session:
        began = time.monotonic()
        for statement in _tables(kafka.bootstrap, topic, readers, properties):
            session.execute(statement)
        job = session.await_job(
            session.execute("INSERT INTO nothing SELECT * FROM backlog")["jobID"]
        )
        whole = time.monotonic() - began
    reading = [v for v in job["vertices"] if v["metrics"]["read-records-complete"]]
    return Backlog(
        rows=sum(v["metrics"]["read-records"] for v in reading),
        whole=whole,
        running=_seconds(reading),
        cpu=cost.cpu,
        jvm_cpu=cost.jvm_cpu,
        python_mb=cost.python_mb,
        jvm_mb=cost.jvm_mb,
    )


def _tables(bootstrap: str, topic: str, readers: int, properties: Mapping[str, str]) -> list[str]:
    kept = ", ".join(f"`{name}` {kind}" for name, kind in COLUMNS.items())
    read = ", ".join(
        f"`{name}` {kind}" + ("" if name in ("key", "value") else " METADATA VIRTUAL")
        for name, kind in COLUMNS.items()
    )
    options = {
        "connector": "kafka",
        "topic": topic,
        "properties.bootstrap.servers": bootstrap,
        **{f"properties.{key}": value for key, value in properties.items()},
        "scan.startup.mode": "earliest-offset",
        "scan.bounded.mode": "latest-offset",
        "key.format": "raw",
        "key.fields": "key",
        "value.format": "raw",
        "value.fields-include": "EXCEPT_KEY",
    }
    given = ", ".join(f"'{key}' = '{value}'" for key, value in options.items())
    settings = {**SETTINGS, "parallelism.default": str(readers)}
    return [
        *(f"SET '{key}' = '{value}'" for key, value in settings.items()),
        f"CREATE TABLE backlog ({read}) WITH ({given})",
        f"CREATE TABLE nothing ({kept}) WITH ('connector' = 'blackhole')",
    ]


def _seconds(vertices: list[dict[str, Any]]) -> float:
    return (
        float(max(v["end-time"] for v in vertices) - min(v["start-time"] for v in vertices)) / 1000
    )
