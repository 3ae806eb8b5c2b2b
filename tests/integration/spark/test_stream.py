"""``format("balanced")`` on a real Spark with a real broker.

What arrives, how often, and by how many tasks.
"""

import json
from collections import Counter
from pathlib import Path

from confluent_kafka import Producer
from pyspark.sql import SparkSession
from pyspark.sql.functions import unix_millis

from support.queries import Collector, start, wait_failed, wait_rows
from testbed.kafka import KafkaCluster
from testbed.waiting import wait_until

from .conftest import Local


def options(kafka: KafkaCluster, topic: str, **more: str) -> dict[str, str]:
    return {
        "kafka.bootstrap.servers": kafka.bootstrap,
        "subscribe": topic,
        "startingOffsets": "earliest",
        **more,
    }


def everything(kafka: KafkaCluster, topic: str) -> Counter[tuple[str, int, int]]:
    """Each record once."""
    return Counter(
        (topic, p, o) for p, (_, end) in kafka.admin.offsets(topic).items() for o in range(end)
    )


def logged_offsets(checkpoint: Path) -> dict[int, dict[str, object]]:
    """Spark's offset log."""
    files = (path for path in (checkpoint / "offsets").iterdir() if path.name.isdigit())
    return {int(path.name): json.loads(path.read_text().splitlines()[-1]) for path in files}


def test_the_schema_is_that_of_the_native_source_and_the_cluster(
    spark: SparkSession, kafka: KafkaCluster, topic: str
) -> None:
    reader = spark.readStream.format("balanced").options(**options(kafka, topic))

    plain, with_headers = reader.load(), reader.option("includeHeaders", "true").load()

    native = ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType"]
    assert plain.columns == [*native, "cluster"]
    assert with_headers.columns == [*native, "headers", "cluster"]
    assert dict(plain.dtypes) == {
        "key": "binary",
        "value": "binary",
        "topic": "string",
        "partition": "int",
        "offset": "bigint",
        "timestamp": "timestamp",
        "timestampType": "int",
        "cluster": "string",
    }


def test_every_field_arrives_as_it_was_produced(
    spark: SparkSession, kafka: KafkaCluster, topic: str, tmp_path: Path
) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    producer.produce(
        topic, key=b"k", value=b"v", partition=0, timestamp=1_700_000_000_123, headers=[("h", b"1")]
    )
    producer.produce(topic, key=None, value=None, partition=0, timestamp=1_700_000_000_124)
    producer.produce(
        topic, key=b"", value=b"\x00\xff", partition=0, headers=[("a", None), ("a", b"2")]
    )
    assert producer.flush(30) == 0
    sink = Collector()

    def keep(rows: object, number: int) -> None:
        sink(rows.withColumn("millis", unix_millis("timestamp")), number)  # type: ignore[attr-defined]

    query = start(spark, keep, tmp_path / "ck", **options(kafka, topic, includeHeaders="true"))
    try:
        wait_rows(query, sink, 3)
    finally:
        query.stop()

    first, second, third = sorted(sink.rows, key=lambda row: row.offset)
    assert (first.key, first.value, first.millis, first.timestampType) == (
        b"k",
        b"v",
        1_700_000_000_123,
        0,
    )
    assert [(h.key, h.value) for h in first.headers] == [("h", b"1")]
    assert (second.key, second.value, second.headers) == (None, None, None)
    assert (bytes(third.key), bytes(third.value)) == (b"", b"\x00\xff")
    assert [(h.key, h.value) for h in third.headers] == [("a", None), ("a", b"2")]
    assert {row.cluster for row in sink.rows} == {"kafka"}


def test_each_micro_batch_has_a_task_per_reader_and_consumers_survive_between_them(
    spark: SparkSession, kafka: KafkaCluster, topic: str, tmp_path: Path
) -> None:
    """Trap: a consumer kept across batches lost rows silently, or stayed paused.

    Every offset is compared.
    """
    sink = Collector()
    query = start(spark, sink, tmp_path / "ck", **options(kafka, topic, parallelism="3"))
    try:
        for round_number in range(1, 6):
            kafka.admin.produce(topic, [b"x"] * 1000)
            wait_rows(query, sink, 1000 * round_number)
    finally:
        query.stop()

    assert sink.records == everything(kafka, topic)
    assert max(len(set(sink.tasks(number).values())) for number in sink.batches) == 3


def test_parallelism_changes_between_two_micro_batches_of_the_same_query(
    spark: SparkSession, kafka: KafkaCluster, topic: str, tmp_path: Path, local: Local
) -> None:
    sink = Collector()
    query = start(spark, sink, tmp_path / "ck", assignmentDir=str(local.folder))

    def epoch() -> int:
        local.operator.look()
        return local.operator.coordinator.state.hosts["0"].acknowledged_epoch

    try:
        wait_until(lambda: epoch() > 0, 60, "the first assignment to be adopted")
        run = query.runId
        for parallelism, produced in ((4, 1000), (1, 2000), (3, 3000)):
            before = epoch()
            local.rescale(parallelism)
            wait_until(lambda old=before: epoch() > old, 30, f"{parallelism} readers to be adopted")
            kafka.admin.produce(topic, [b"x"] * 1000)
            wait_rows(query, sink, produced)
            _, newest = max(logged_offsets(tmp_path / "ck").items())
            assert newest["parallelism"] == parallelism
        assert query.runId == run
    finally:
        query.stop()

    assert sink.records == everything(kafka, topic)


def test_a_micro_batch_that_failed_is_replayed_with_its_old_owners(
    spark: SparkSession, kafka: KafkaCluster, topic: str, tmp_path: Path, local: Local
) -> None:
    """Rule 9: the assignment changed while the query was down; the replay must not notice."""
    kafka.admin.produce(topic, [b"x"] * 400)
    sink, checkpoint = Collector(), tmp_path / "ck"
    seen: list[dict[tuple[str, int], int]] = []
    sink.fail_after = lambda number: bool(sink.batches[number]) and not seen
    first = start(spark, sink, checkpoint, assignmentDir=str(local.folder))
    wait_until(
        lambda: local.operator.look() or first.exception() is not None, 60, "the query to fail"
    )
    failed = max(number for number, rows in sink.batches.items() if rows)
    seen.append(sink.tasks(failed))
    local.rescale(4)
    wait_until(
        lambda: local.operator.coordinator.state.parallelism == 4,
        30,
        "the new parallelism to be decided",
    )
    kafka.admin.produce(topic, [b"y"] * 400)

    second = start(spark, sink, checkpoint, assignmentDir=str(local.folder))
    try:
        wait_until(lambda: local.operator.look() or len(sink.rows) >= 800, 60, "all rows")
    finally:
        second.stop()

    assert sink.attempts[failed] == 2
    assert sink.tasks(failed) == seen[0]
    assert sink.records == everything(kafka, topic)
    assert logged_offsets(checkpoint)[max(logged_offsets(checkpoint))]["parallelism"] == 4


def test_available_now_reads_the_available_records_and_ends(
    spark: SparkSession, kafka: KafkaCluster, topic: str, tmp_path: Path
) -> None:
    sink, checkpoint = Collector(), tmp_path / "ck"

    for produced in (500, 0, 200):
        kafka.admin.produce(topic, [b"x"] * produced)
        query = start(
            spark, sink, checkpoint, trigger={"availableNow": True}, **options(kafka, topic)
        )
        assert query.awaitTermination(60), "AvailableNow must end by itself"
        assert query.exception() is None
        assert sink.records == everything(kafka, topic)


def test_two_queries_on_one_topic_do_not_disturb_each_other(
    spark: SparkSession, kafka: KafkaCluster, topic: str, tmp_path: Path
) -> None:
    kafka.admin.produce(topic, [b"x"] * 300)
    sinks = [Collector(), Collector()]
    queries = [
        start(spark, sink, tmp_path / f"ck{i}", **options(kafka, topic))
        for i, sink in enumerate(sinks)
    ]
    try:
        for query, sink in zip(queries, sinks, strict=True):
            wait_rows(query, sink, 300)
    finally:
        for query in queries:
            query.stop()

    assert all(sink.records == everything(kafka, topic) for sink in sinks)


def test_new_partitions_are_read_from_their_first_record(
    spark: SparkSession, kafka: KafkaCluster, topic: str, tmp_path: Path
) -> None:
    sink = Collector()
    latest = options(kafka, topic, startingOffsets="latest", discoveryIntervalSeconds="1")
    query = start(spark, sink, tmp_path / "ck", **latest)
    try:
        wait_until(lambda: len(sink.batches) > 0, 60, "the query to begin")
        kafka.admin.add_partitions(topic, 6)
        kafka.admin.produce(topic, [b"x"] * 50, partition=5)
        wait_rows(query, sink, 50)
    finally:
        query.stop()

    assert sink.records == everything(kafka, topic)


def test_deleted_records_fail_the_query_in_words(
    spark: SparkSession, kafka: KafkaCluster, topic: str, tmp_path: Path
) -> None:
    """Lost data is never skipped silently."""
    kafka.admin.produce(topic, [b"x"] * 100, partition=0)
    sink = Collector()
    sink.fail_before = lambda _: not done
    done: list[int] = []
    first = start(spark, sink, tmp_path / "ck", **options(kafka, topic))
    wait_failed(first)
    kafka.admin.delete_records(topic, {0: 60})
    done.append(1)

    second = start(spark, sink, tmp_path / "ck", **options(kafka, topic))
    try:
        wait_until(lambda: second.exception() is not None or len(sink.rows) > 0, 60, "an outcome")
        if second.exception() is None:
            return  # the first batch had read nothing yet: it starts at the new earliest offset
        assert "does not exist any more" in str(second.exception())
    finally:
        second.stop()
