"""Which Spark checkpoints lie beside one another, by checkpoints that a real Spark has written."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from balanced_source.documents import stream_offset
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source_spark.data_source import register
from balanced_source_spark.former_hosts import former_hosts
from testbed.kafka import KafkaCluster

pytestmark = pytest.mark.integration

Reads = Callable[[Path], None]


@pytest.fixture
def reads(spark: SparkSession, kafka: KafkaCluster, topic: str) -> Reads:
    """Reads a topic with a query that has its Spark checkpoint in a folder."""
    register(spark)
    kafka.admin.produce(topic, [b"x"] * 8)

    def run(checkpoint: Path) -> None:
        rows = spark.readStream.format("balanced").options(
            **{"kafka.bootstrap.servers": kafka.bootstrap, "subscribe": topic}
        )
        writer = rows.load().writeStream.format("noop").trigger(availableNow=True)
        query = writer.option("checkpointLocation", str(checkpoint)).start()
        try:
            assert query.awaitTermination(120)
        finally:
            query.stop()

    return run


def test_hosts_whose_checkpoints_hold_splits_are_found(
    spark: SparkSession, reads: Reads, tmp_path: Path
) -> None:
    reads(tmp_path / "hosts" / "10")
    reads(tmp_path / "hosts" / "2")
    (tmp_path / "hosts" / "3" / "offsets").mkdir(parents=True)  # has read nothing
    (tmp_path / "hosts" / "notes").mkdir()

    assert former_hosts(spark, str(tmp_path), host="0") == ("2", "10")
    assert former_hosts(spark, f"file://{tmp_path}/", host="2") == ("10",)

    reads(tmp_path)
    assert former_hosts(spark, str(tmp_path), host="2") == ("0", "10")


def test_a_source_with_one_host_has_none(spark: SparkSession, reads: Reads, tmp_path: Path) -> None:
    assert former_hosts(spark, str(tmp_path / "nothing"), host="0") == ()
    reads(tmp_path)

    assert former_hosts(spark, str(tmp_path), host="0") == ()


@pytest.mark.parametrize(
    ("last", "found"),
    [
        (StreamOffset(epoch=9), ()),
        (StreamOffset(epoch=9, retained={("c", "t", 0): 4}), ("1",)),
        ("newer software", ("1",)),
    ],
    ids=["handed over", "not taken over yet", "not understood"],
)
def test_a_host_that_has_handed_over_is_not_asked_again(
    spark: SparkSession, reads: Reads, tmp_path: Path, last: Any, found: tuple[str, ...]
) -> None:
    checkpoint = tmp_path / "hosts" / "1"
    reads(checkpoint)
    offsets = checkpoint / "offsets"
    newest = max(int(entry.name) for entry in offsets.iterdir() if entry.name.isdecimal())
    version, metadata, offset = (offsets / str(newest)).read_text().splitlines()
    assert stream_offset.from_json(json.loads(offset)).positions
    text = last if isinstance(last, str) else json.dumps(stream_offset.to_json(last))
    (offsets / str(newest + 1)).write_text(f"{version}\n{metadata}\n{text}")

    assert former_hosts(spark, str(tmp_path), host="0") == found


def test_a_place_that_cannot_be_listed_is_left_to_spark(spark: SparkSession) -> None:
    assert former_hosts(spark, "nosuch://bucket/checkpoint", host="0") == ()
