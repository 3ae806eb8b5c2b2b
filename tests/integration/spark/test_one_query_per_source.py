"""Real queries that lose their source, or their Spark checkpoint.

They say so, and deliver what they say.
"""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from balanced_source.documents import report as report_document
from balanced_source.documents.report import HostReport
from balanced_source_adapters.folder import report_path, write_atomically
from balanced_source_operator.local import UID
from support.queries import Collector, start, wait_rows
from testbed.kafka import KafkaCluster
from testbed.waiting import wait_until

from .conftest import Local
from .test_stream import everything

pytestmark = pytest.mark.thorough


class Scene:
    """A source in local mode, and queries that follow one another."""

    def __init__(self, spark: SparkSession, local: Local, checkpoint: Path) -> None:
        self.spark, self.local, self.checkpoint = spark, local, checkpoint
        self.sink = Collector()
        self._queries: list[StreamingQuery] = []

    def start(self, checkpoint: Path | None = None) -> StreamingQuery:
        folder = str(self.local.folder)
        self._queries.append(
            start(self.spark, self.sink, checkpoint or self.checkpoint, assignmentDir=folder)
        )
        return self._queries[-1]

    def close(self) -> None:
        """Stop what still runs.

        A query that outlives its test slows down all others of the session.
        """
        for query in self._queries:
            query.stop()

    @property
    def report(self) -> HostReport:
        return report_document.decode(report_path(self.local.folder, "0").read_text(), source=UID)

    def wait(self, condition: Callable[[], Any], what: str) -> None:
        """Wait while local mode serves."""
        wait_until(lambda: self.local.operator.look() or condition(), 90, what)

    def read(self, query: StreamingQuery, rows: int, *, records: int | None = None) -> None:
        """Wait until so many rows are delivered and so many records reported delivered.

        Then stop.
        """
        self.wait(lambda: len(self.sink.rows) >= rows, f"{rows} rows")
        wait_rows(query, self.sink, rows)
        wanted = records or rows
        self.wait(
            lambda: sum(p or 0 for p in self.report.positions.values()) >= wanted, "the report"
        )
        query.stop()


@pytest.fixture
def scene(spark: SparkSession, local: Local, tmp_path: Path) -> Iterator[Scene]:
    made = Scene(spark, local, tmp_path / "ck")
    yield made
    made.close()


def test_a_query_that_was_replaced_ends_with_an_error(
    kafka: KafkaCluster, topic: str, scene: Scene
) -> None:
    kafka.admin.produce(topic, [b"x"] * 100)
    query = scene.start()
    scene.wait(lambda: len(scene.sink.rows) >= 100, "all records")

    other = HostReport(incarnation=7, instance="3f2a9c1b pod=notebook", location="laptop")

    def has_ended() -> bool:
        # A report of ours that was on its way may replace this one; another driver would report
        # again, too.
        write_atomically(
            report_path(scene.local.folder, "0"), report_document.encode(other, source=UID)
        )
        return query.exception() is not None

    wait_until(has_ended, 90, "the query to end")

    told = str(query.exception())
    assert (
        "FencedError: another query has taken over: pod notebook reads as incarnation 7 of host 0"
        in told
    )
    assert "stop the other one before you start this one again" in told


def test_after_a_lost_checkpoint_reading_continues_at_the_last_report_with_a_condition(
    kafka: KafkaCluster, topic: str, tmp_path: Path, scene: Scene
) -> None:
    kafka.admin.produce(topic, [b"x"] * 100)
    scene.read(scene.start(), 100)
    scene.sink.batches = {-1: scene.sink.rows}

    query = scene.start(tmp_path / "another")
    wait_until(lambda: scene.report.incarnation == 2, 90, "the registration")
    assert [problem.reason for problem in scene.report.problems] == ["CheckpointLost"]
    kafka.admin.produce(topic, [b"y"] * 10)
    scene.read(query, 110)

    assert scene.sink.records == everything(kafka, topic)
    assert not scene.report.problems


def test_an_older_checkpoint_delivers_exactly_the_reported_records_again(
    kafka: KafkaCluster, topic: str, tmp_path: Path, scene: Scene
) -> None:
    kafka.admin.produce(topic, [b"x"] * 100)
    scene.read(scene.start(), 100)
    shutil.copytree(tmp_path / "ck", tmp_path / "copy")
    kafka.admin.produce(topic, [b"y"] * 50)
    scene.read(scene.start(), 150)
    scene.sink.batches = {-1: scene.sink.rows}

    query = scene.start(tmp_path / "copy")
    wait_until(lambda: scene.report.incarnation == 3, 90, "the registration")
    (problem,) = scene.report.problems
    assert problem.reason == "CheckpointOlder"
    assert "go back by 50 offsets" in problem.message
    scene.read(query, 200, records=150)

    assert sum(scene.sink.records.values()) == 200
    assert max(scene.sink.records.values()) == 2
