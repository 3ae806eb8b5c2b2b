"""`rescale` on a real query: found through its progress, live, and again after a restart."""

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from balanced_source_spark import rescale
from support.queries import Collector, start, wait_rows
from testbed.kafka import KafkaCluster
from testbed.waiting import wait_until

from .test_stream import everything, options

# the machine may do other things too
pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]


def readers(query: StreamingQuery) -> int | None:
    """The number of readers of the last micro-batch."""
    progress = query.lastProgress
    end = progress.sources[0].endOffset if progress is not None else None
    found: int | None = json.loads(end).get("parallelism") if end else None
    return found


def test_a_program_rescales_its_query_and_again_after_a_restart(
    spark: SparkSession, kafka: KafkaCluster, topic: str, tmp_path: Path
) -> None:
    sink, given = Collector(), options(kafka, topic, parallelism="1")
    for wanted in (4, 2):
        query = start(spark, sink, tmp_path / "ck", **given)
        try:
            wait_until(lambda query=query: readers(query) == 1, 240, "the first reader")
            rescale(query, wanted)
            wait_until(
                lambda query=query, wanted=wanted: readers(query) == wanted,
                240,
                f"{wanted} readers",
            )
            before = len(sink.rows)
            kafka.admin.produce(topic, [b"x"] * 40)
            wait_rows(query, sink, before + 40, timeout=240)
        finally:
            query.stop()

    assert sink.records == everything(kafka, topic)
