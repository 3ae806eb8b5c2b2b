"""`rescale` on a real query: found through its progress, live, and again after a restart."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from balanced_source_spark import rescale
from support.queries import Collector, start, wait_rows
from testbed.kafka import KafkaCluster
from testbed.waiting import wait_until

from .test_stream import everything, options

pytestmark = pytest.mark.integration


def readers(sink: Collector) -> int:
    newest = max(sink.batches)
    return len(set(sink.tasks(newest).values()))


def read_with(query: StreamingQuery, sink: Collector, kafka: KafkaCluster, topic: str, count: int) -> None:
    """Produce until a micro-batch was read by so many readers."""

    def is_read_so() -> bool:
        before = len(sink.rows)
        kafka.admin.produce(topic, [b"x"] * 40)
        wait_rows(query, sink, before + 40)
        return readers(sink) == count

    wait_until(is_read_so, 60, f"{count} readers")


def test_a_program_rescales_its_query_and_again_after_a_restart(
    spark: SparkSession, kafka: KafkaCluster, topic: str, tmp_path: Path
) -> None:
    sink, given = Collector(), options(kafka, topic, parallelism="1")
    for wanted in (4, 2):
        query = start(spark, sink, tmp_path / "ck", **given)
        try:
            read_with(query, sink, kafka, topic, 1)
            rescale(query, wanted)
            read_with(query, sink, kafka, topic, wanted)
        finally:
            query.stop()

    assert sink.records == everything(kafka, topic)
