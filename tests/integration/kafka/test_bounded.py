"""A source with an end, on a real Spark and a real broker, coordinated by the operator's code in local mode."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyspark.sql import SparkSession

from balanced_source_operator.local import LocalOperator
from balanced_source_spark.application import stop_when_finished
from support.builders import spec_json
from support.queries import Collector, start
from testbed.kafka import KafkaCluster
from testbed.waiting import wait_until

Make = Callable[..., LocalOperator]


@pytest.fixture
def operator(tmp_path: Path, kafka: KafkaCluster, topic: str) -> Make:
    def make(**changes: Any) -> LocalOperator:
        settings = {
            "clusters": [{"name": "main", "bootstrapServers": kafka.bootstrap}],
            "subscription": {"topics": [topic]},
            **changes,
        }
        file = tmp_path / "source.yaml"
        file.write_text(yaml.safe_dump({"spec": spec_json(parallelism=2, source={"kafka": settings})}))
        made = LocalOperator(file, tmp_path / "documents")
        made.start()
        return made

    return make


@pytest.mark.scenario("A5")
def test_the_query_ends_by_itself_when_all_stops_are_reached(
    spark: SparkSession, kafka: KafkaCluster, topic: str, tmp_path: Path, operator: Make
) -> None:
    """One-time discovery says no more splits; what is produced after the start is not read; the source is finished."""
    kafka.admin.produce(topic, [b"x"] * 500, partition=0)
    kafka.admin.produce(topic, [b"x"] * 20, partition=1)
    made = operator(
        stoppingOffsets={"type": "Specific", "offsets": {topic: {"0": 400}}},
        limits={"maxOffsetsPerTrigger": 150},
    )
    wait_until(lambda: made.coordinator.state.epoch > 0, 30, "the stops to be resolved")
    kafka.admin.produce(topic, [b"late"] * 30, partition=1)
    sink = Collector()

    query = start(spark, sink, tmp_path / "ck", assignmentDir=str(tmp_path / "documents"))
    stop_when_finished(spark, query)
    try:
        wait_until(lambda: made.look() or not query.isActive, 120, "the query to end by itself")
        assert query.exception() is None
        wait_until(lambda: made.look() or made.coordinator.enumerator.is_finished(), 30, "the source to be finished")
    finally:
        query.stop()
        made.close()

    want = {(topic, 0, offset) for offset in range(400)} | {(topic, 1, offset) for offset in range(20)}
    assert dict(sink.records) == dict.fromkeys(want, 1)
