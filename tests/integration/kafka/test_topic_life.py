"""Recreated topics, retention faster than the query, and what the group hears: real parts."""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyspark.sql import SparkSession

from balanced_source_adapters.kafka.client import ClusterClient
from balanced_source_operator.local import LocalOperator
from balanced_source_spark.executors import Board
from support.builders import spec_json
from support.queries import Collector, start, wait_failed, wait_rows
from testbed.kafka import KafkaCluster
from testbed.waiting import wait_until

Make = Callable[..., LocalOperator]


@pytest.fixture
def operator(tmp_path: Path, kafka: KafkaCluster, topic: str) -> Iterator[Make]:
    made: list[LocalOperator] = []

    def make(**changes: Any) -> LocalOperator:
        settings = {
            "clusters": [{"name": "main", "bootstrapServers": kafka.bootstrap}],
            "subscription": {"topics": [topic]},
            "discovery": {"interval": "1s"},
            **changes,
        }
        file = tmp_path / "source.yaml"
        file.write_text(
            yaml.safe_dump({"spec": spec_json(parallelism=2, source={"kafka": settings})})
        )
        made.append(LocalOperator(file, tmp_path / "documents"))
        made[-1].start()
        return made[-1]

    yield make
    for one in made:
        one.close()


def values(sink: Collector) -> Counter[bytes]:
    return Counter(bytes(row.value) for row in sink.rows)


def test_a_topic_that_is_recreated_twice_is_read_from_its_beginning_each_time(
    spark: SparkSession, kafka: KafkaCluster, topic: str, tmp_path: Path, operator: Make
) -> None:
    """The query continues; no offset of a former topic is applied to a new one."""
    kafka.admin.produce(topic, [b"old"] * 300, partition=0)
    made, sink = operator(onDataLoss="Continue"), Collector()
    query = start(spark, sink, tmp_path / "ck", assignmentDir=str(tmp_path / "documents"))
    try:
        wait_until(
            lambda: made.look() or len(sink.rows) >= 300, 90, "the records of the former topic"
        )
        for name, count, total in ((b"new", 500, 800), (b"newest", 200, 1000)):
            kafka.admin.delete_topic(topic)
            kafka.admin.create_topic(topic, partitions=3)
            kafka.admin.produce(topic, [name] * count, partition=0)
            wait_until(
                lambda total=total: made.look() or len(sink.rows) >= total,
                90,
                f"the {name!r} records",
            )
        assert query.exception() is None
    finally:
        query.stop()

    assert values(sink) == {b"old": 300, b"new": 500, b"newest": 200}


def test_a_topic_that_is_recreated_while_a_larger_parallelism_waits_for_executors_is_read_once(
    spark: SparkSession, kafka: KafkaCluster, topic: str, tmp_path: Path, operator: Make
) -> None:
    """The newest assignment has let go of the old topic; the epoch in use has not."""
    kafka.admin.produce(topic, [b"old"] * 100, partition=0)
    made, sink, board = operator(onDataLoss="Continue"), Collector(), Board(tmp_path / "executors")
    board.folder.mkdir()
    board.post("ready", 2)
    folders = {"assignmentDir": str(tmp_path / "documents"), "executorsDir": str(board.folder)}
    query = start(spark, sink, tmp_path / "ck", **folders, executorPatience="1h")
    try:
        wait_until(
            lambda: made.look() or len(sink.rows) >= 100, 90, "the records of the former topic"
        )
        spec = yaml.safe_load((tmp_path / "source.yaml").read_text())
        spec["spec"]["parallelism"] = 5
        (tmp_path / "source.yaml").write_text(yaml.safe_dump(spec))
        wait_until(
            lambda: made.look() or board.read("wanted") == 5, 60, "executors to be asked for"
        )
        kafka.admin.delete_topic(topic)
        kafka.admin.create_topic(topic, partitions=3)
        kafka.admin.produce(topic, [b"new"] * 300, partition=0)
        wait_until(
            lambda: made.look() or not made.coordinator.state.owners,
            60,
            "the old splits to be revoked",
        )
        board.post("ready", 5)

        wait_until(lambda: made.look() or len(sink.rows) >= 400, 90, "the records of the new topic")
        assert query.exception() is None
    finally:
        query.stop()

    assert values(sink) == {b"old": 100, b"new": 300}


def test_retention_that_was_faster_is_skipped_and_counted(
    spark: SparkSession, kafka: KafkaCluster, topic: str, tmp_path: Path, operator: Make
) -> None:
    """A micro-batch that was planned before can be replayed: its range begins at what is left."""
    kafka.admin.produce(topic, [b"x"] * 100, partition=0)
    made, sink, done = operator(onDataLoss="Continue"), Collector(), list[int]()
    sink.fail_before = lambda number: not done and bool(number >= 0)
    folder = str(tmp_path / "documents")
    first = start(spark, sink, tmp_path / "ck", assignmentDir=folder)
    wait_until(lambda: made.look() or first.exception() is not None, 90, "the query to fail")
    kafka.admin.delete_records(topic, {0: 60})
    done.append(1)

    second = start(spark, sink, tmp_path / "ck", assignmentDir=folder)
    try:
        wait_until(lambda: made.look() or len(sink.rows) >= 40, 90, "the records that are left")
        kafka.admin.produce(topic, [b"y"] * 5, partition=0)
        wait_until(lambda: made.look() or len(sink.rows) >= 45, 90, "the records after them")
        assert second.exception() is None
    finally:
        second.stop()

    assert sorted(row.offset for row in sink.rows) == list(range(60, 105))


def test_limits_and_the_group_that_is_told(
    spark: SparkSession, kafka: KafkaCluster, topic: str, tmp_path: Path, operator: Make
) -> None:
    """No micro-batch is larger than allowed, and the group stands where the query does."""
    kafka.admin.produce(topic, [b"x"] * 900, partition=0)
    kafka.admin.produce(topic, [b"x"] * 10, partition=1)
    made, sink = (
        operator(limits={"maxOffsetsPerTrigger": 200}, commitGroup=f"lag-{topic}"),
        Collector(),
    )
    query = start(spark, sink, tmp_path / "ck", assignmentDir=str(tmp_path / "documents"))
    client = ClusterClient("main", {"bootstrap.servers": kafka.bootstrap})
    splits = [("main", topic, p) for p in range(3)]
    try:
        wait_until(lambda: made.look() or len(sink.rows) >= 910, 90, "all records")
        wait_rows(query, sink, 910)
        wait_until(
            lambda: (
                client.committed(f"lag-{topic}", splits)
                == {splits[0]: 900, splits[1]: 10, splits[2]: 0}
            ),
            60,
            "the group to be told",
        )
    finally:
        query.stop()

    sizes = [len(rows) for _, rows in sorted(sink.batches.items()) if rows]
    assert max(sizes) <= 200
    first = next(rows for _, rows in sorted(sink.batches.items()) if rows)
    assert sum(row.partition == 1 for row in first) == 10, (
        "the small split is read to its end at once"
    )


def embedded(kafka: KafkaCluster, topic: str, **options: str) -> dict[str, str]:
    """Options of a query without an operator."""
    base = {
        "kafka.bootstrap.servers": kafka.bootstrap,
        "subscribe": topic,
        "startingOffsets": "earliest",
    }
    return {**base, **options}


def recreate(kafka: KafkaCluster, topic: str, count: int) -> None:
    kafka.admin.delete_topic(topic)
    kafka.admin.create_topic(topic, partitions=3)
    kafka.admin.produce(topic, [b"new"] * count, partition=0)


def test_without_an_operator_a_recreated_topic_ends_the_query(
    spark: SparkSession, kafka: KafkaCluster, topic: str, tmp_path: Path
) -> None:
    kafka.admin.produce(topic, [b"old"] * 30, partition=0)
    sink = Collector()
    query = start(spark, sink, tmp_path / "ck", **embedded(kafka, topic))
    wait_rows(query, sink, 30)
    recreate(kafka, topic, 50)

    reason = wait_failed(query)

    assert f"topic {topic} was deleted and created again" in reason
    assert "failOnDataLoss to false" in reason
    assert values(sink) == {b"old": 30}


@pytest.mark.parametrize("reader", ["python", "native"])
@pytest.mark.parametrize("count", [10, 50], ids=["fewer records", "more records"])
def test_a_replay_does_not_read_a_new_topic_in_place_of_the_old_one(
    spark: SparkSession, kafka: KafkaCluster, topic: str, tmp_path: Path, *, count: int, reader: str
) -> None:
    """The micro-batch was logged, and not written, before the topic was deleted."""
    kafka.admin.produce(topic, [b"old"] * 30, partition=0)
    sink = Collector()
    sink.fail_before = lambda _: True
    options = embedded(kafka, topic, reader=reader)
    wait_failed(start(spark, sink, tmp_path / "ck", **options))
    recreate(kafka, topic, count)
    sink.fail_before = lambda _: False

    query = start(spark, sink, tmp_path / "ck", **options)
    wait_until(lambda: sink.rows or query.exception() is not None, 60, "the query to fail")
    query.stop()

    reason = str(query.exception())
    assert f"topic {topic} was deleted and created again" in reason
    assert sink.rows == []


@pytest.mark.parametrize("reader", ["python", "native"])
def test_a_replay_skips_a_recreated_topic_with_consent(
    spark: SparkSession, kafka: KafkaCluster, topic: str, tmp_path: Path, reader: str
) -> None:
    kafka.admin.produce(topic, [b"old"] * 30, partition=0)
    sink = Collector()
    sink.fail_before = lambda _: True
    options = embedded(
        kafka, topic, reader=reader, failOnDataLoss="false", discoveryIntervalSeconds="1"
    )
    wait_failed(start(spark, sink, tmp_path / "ck", **options))
    recreate(kafka, topic, 50)
    sink.fail_before = lambda _: False

    query = start(spark, sink, tmp_path / "ck", **options)
    try:
        wait_rows(query, sink, 50)
    finally:
        query.stop()

    assert values(sink) == {b"new": 50}
