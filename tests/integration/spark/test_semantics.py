"""What the engine does with a source: tries again, reads twice, kills workers, joins, keeps state.

All on a real Spark.

Every test compares sets of (topic, partition, offset) with what is in the log.
"""

import contextlib
import threading
from collections import Counter
from pathlib import Path

import psutil
import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as f

from balanced_source_spark.kafka import native
from support.queries import Collector, Record, start, wait_for, wait_rows
from testbed.kafka import KafkaCluster
from testbed.waiting import wait_until

from .conftest import Local
from .test_stream import everything, options

READERS = ["python", *(["native"] if native.is_available() else [])]

# deadlines are for machines that do other things too
pytestmark = [pytest.mark.timeout(900), pytest.mark.thorough]


@pytest.fixture(params=READERS)
def reader(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def records(rows: list[Row]) -> Counter[Record]:
    return Counter((row.topic, row.partition, row.offset) for row in rows)


def test_two_actions_on_one_micro_batch_read_the_same(
    spark: SparkSession, kafka: KafkaCluster, topic: str, tmp_path: Path, reader: str
) -> None:
    """`foreachBatch` with two actions reads every range twice.

    The consumer that was kept has to go back.
    """
    pairs: list[tuple[Counter[Record], Counter[Record]]] = []

    def twice(rows: DataFrame, _: int) -> None:
        pairs.append((records(rows.collect()), records(rows.collect())))

    query = start(
        spark, twice, tmp_path / "ck", **options(kafka, topic, reader=reader, parallelism="2")
    )
    try:
        for produced in (700, 1400):
            kafka.admin.produce(topic, [b"x"] * 700)
            wait_until(
                lambda n=produced: sum(len(first) for first, _ in list(pairs)) >= n, 240, "all rows"
            )
    finally:
        query.stop()

    assert all(first == second for first, second in pairs)
    assert sum((first for first, _ in pairs), Counter()) == everything(kafka, topic)


def test_a_task_that_failed_is_tried_again_and_reads_the_same(
    spark: SparkSession, kafka: KafkaCluster, topic: str, tmp_path: Path, reader: str
) -> None:
    kafka.admin.produce(topic, [b"x"] * 3000)
    marker, seen = tmp_path / "failed", Collector()

    @f.udf("boolean", useArrow=False)
    def fail_once(offset: int) -> bool:
        if offset == 200 and not marker.exists():
            marker.touch()
            raise RuntimeError("the first attempt fails")
        return True

    def sink(rows: DataFrame, number: int) -> None:
        seen(rows.filter(fail_once("offset")), number)

    query = start(
        spark, sink, tmp_path / "ck", **options(kafka, topic, reader=reader, parallelism="2")
    )
    try:
        wait_rows(query, seen, 3000)
    finally:
        query.stop()

    assert marker.exists()
    assert seen.records == everything(kafka, topic)


def test_workers_that_were_killed_are_replaced(
    spark: SparkSession, kafka: KafkaCluster, topic: str, tmp_path: Path, reader: str
) -> None:
    """With them went the consumers that were kept."""
    sink = Collector()
    query = start(
        spark, sink, tmp_path / "ck", **options(kafka, topic, reader=reader, parallelism="2")
    )
    try:
        for number in range(1, 4):
            kafka.admin.produce(topic, [b"x"] * 500)
            wait_rows(query, sink, 500 * number)
            for worker in workers():
                with contextlib.suppress(psutil.NoSuchProcess):
                    worker.kill()
    finally:
        query.stop()

    assert sink.records == everything(kafka, topic)


def workers() -> list[psutil.Process]:
    """Spark's reused Python workers: children of its daemon."""
    return [
        child
        for p in psutil.Process().children(recursive=True)
        if is_daemon(p)
        for child in p.children()
    ]


def is_daemon(process: psutil.Process) -> bool:
    try:
        return "pyspark.daemon" in " ".join(process.cmdline())
    except psutil.Error:  # it has just ended
        return False


def test_available_now_ends_at_the_records_of_its_start_although_more_arrive(
    spark: SparkSession, kafka: KafkaCluster, topic: str, tmp_path: Path, reader: str
) -> None:
    kafka.admin.produce(topic, [b"x"] * 1000)
    sink, stop = Collector(), threading.Event()

    def keep_producing() -> None:
        while not stop.is_set():
            kafka.admin.produce(topic, [b"y"] * 50)

    producing = threading.Thread(target=keep_producing)
    producing.start()
    try:
        wanted = options(kafka, topic, reader=reader)
        first = start(spark, sink, tmp_path / "ck", trigger={"availableNow": True}, **wanted)
        assert first.awaitTermination(90), "growth must not keep it going"
    finally:
        stop.set()
        producing.join()
    assert len(sink.rows) >= 1000
    second = start(spark, sink, tmp_path / "ck", trigger={"availableNow": True}, **wanted)
    assert second.awaitTermination(90)

    assert sink.records == everything(kafka, topic)


def test_a_query_continues_although_its_start_offsets_and_their_records_are_gone(
    spark: SparkSession, kafka: KafkaCluster, topic: str, tmp_path: Path
) -> None:
    """The migration guide has people set start offsets, which stay in their programs."""
    kafka.admin.produce(topic, [b"x"] * 40, partition=0)
    wanted = options(kafka, topic, startingOffsets=f'{{"{topic}":{{"0":30}}}}')
    sink = Collector()
    for last in (40, 45):
        query = start(spark, sink, tmp_path / "ck", trigger={"availableNow": True}, **wanted)
        assert query.awaitTermination(90)
        assert sink.records == Counter((topic, 0, offset) for offset in range(30, last))
        kafka.admin.delete_records(topic, {0: 40})
        kafka.admin.produce(topic, [b"y"] * 5, partition=0)


def test_two_balanced_sources_join_as_streams(
    spark: SparkSession, kafka: KafkaCluster, topic: str, tmp_path: Path, reader: str
) -> None:
    other = f"{topic}-other"
    kafka.admin.create_topic(other, partitions=3)
    kafka.admin.produce(topic, [str(number).encode() for number in range(300)])
    kafka.admin.produce(other, [str(number).encode() for number in range(100, 400)])
    left, right = (
        spark.readStream.format("balanced")
        .options(**options(kafka, name, reader=reader, columns="value"))
        .load()
        for name in (topic, other)
    )
    joined: list[int] = []

    def sink(rows: DataFrame, _: int) -> None:
        joined.extend(int(row.value) for row in rows.collect())

    query = (
        left.join(right, "value")
        .writeStream.foreachBatch(sink)
        .option("checkpointLocation", str(tmp_path))
        .start()
    )
    try:
        wait_until(
            lambda: len(joined) >= 200 or query.exception() is not None, 120, "the joined rows"
        )
    finally:
        query.stop()

    assert sorted(joined) == list(range(100, 300))


def test_state_survives_a_rescale(
    spark: SparkSession, kafka: KafkaCluster, topic: str, tmp_path: Path, local: Local
) -> None:
    """Readers rescale freely; the number of state partitions stays as it was."""
    counts: dict[str, int] = {}

    def sink(rows: DataFrame, _: int) -> None:
        counts.update({row.value.decode(): row["count"] for row in rows.collect()})

    rows = spark.readStream.format("balanced").option("assignmentDir", str(local.folder)).load()
    query = (
        rows.groupBy("value")
        .count()
        .writeStream.outputMode("update")
        .foreachBatch(sink)
        .option("checkpointLocation", str(tmp_path / "ck"))
        .start()
    )
    try:
        for number, parallelism in enumerate((2, 4, 1), 1):
            local.rescale(parallelism)
            kafka.admin.produce(topic, [str(key).encode() for key in range(20)] * 10)
            wait_until(
                lambda n=number: (
                    local.operator.look()
                    or (set(counts.values()) == {10 * n} and len(counts) == 20)
                ),
                90,
                "all counts",
            )
    finally:
        query.stop()


def test_a_hot_split_is_read_by_all_readers_once(
    spark: SparkSession, kafka: KafkaCluster, topic: str, tmp_path: Path, reader: str
) -> None:
    for partition, count in ((0, 8000), (1, 500), (2, 500)):
        kafka.admin.produce(topic, [b"x"] * count, partition=partition)
    sink = Collector()
    wanted = options(kafka, topic, reader=reader, parallelism="3", maxRecordsPerReader="100")
    query = start(spark, sink, tmp_path / "ck", trigger={"availableNow": True}, **wanted)
    assert query.awaitTermination(90)

    assert sink.records == everything(kafka, topic)
    loads = Counter(row.task for row in sink.rows)
    assert max(loads.values()) == 3000


def test_a_batch_query_reads_between_start_and_stop(
    spark: SparkSession, kafka: KafkaCluster, topic: str, reader: str
) -> None:
    kafka.admin.produce(topic, [b"x"] * 1000)
    source = spark.read.format("balanced").options(
        **{
            "kafka.bootstrap.servers": kafka.bootstrap,
            "subscribe": topic,
            "reader": reader,
            "parallelism": "2",
        }
    )

    everything_read = source.load().collect()
    part = (
        source.option("startingOffsets", f'{{"{topic}":{{"0":10,"1":20}}}}')
        .option("endingOffsets", f'{{"{topic}":{{"0":15,"1":-1,"2":0,"3":0}}}}')
        .load()
        .collect()
    )

    ends = {p: end for p, (_, end) in kafka.admin.offsets(topic).items()}
    assert records(everything_read) == everything(kafka, topic)
    assert records(part) == Counter(
        [(topic, 0, o) for o in range(10, 15)] + [(topic, 1, o) for o in range(20, ends[1])]
    )


@pytest.mark.slow
# what is admitted is decided before anybody reads
@pytest.mark.parametrize("reader", READERS[-1:], indirect=True)
def test_a_skewed_backlog_loses_no_row_to_a_watermark_when_it_is_aligned(
    spark: SparkSession, kafka: KafkaCluster, tmp_path: Path, reader: str
) -> None:
    """Partition 0 has a record a second, partition 1 one a minute.

    The windows tolerate two minutes.
    """
    dropped = {
        name: dropped_late(
            spark, kafka, tmp_path, f"skewed-{reader}-{name}", {"reader": reader, **more}
        )
        for name, more in (("aligned", {"alignmentMaxDrift": "1m"}), ("plain", {}))
    }

    assert dropped["aligned"] == 0
    assert dropped["plain"] > 0


def dropped_late(
    spark: SparkSession, kafka: KafkaCluster, folder: Path, topic: str, more: dict[str, str]
) -> int:
    """Rows that a windowed count drops as late while it reads a backlog that grows meanwhile."""
    begin, minute = 1_700_000_000_000, 60_000
    kafka.admin.create_topic(topic, partitions=2)
    write_times(kafka, topic, 0, range(begin, begin + 10 * minute, 1000))
    write_times(kafka, topic, 1, range(begin, begin + 60 * minute, minute))
    rows = spark.readStream.format("balanced").options(**options(kafka, topic, **more)).load()
    query = (
        rows.withWatermark("timestamp", "2 minutes")
        .groupBy(f.window("timestamp", "1 minute"))
        .count()
        .writeStream.format("noop")
        .outputMode("update")
        .option("checkpointLocation", str(folder / topic))
        .trigger(processingTime="100 milliseconds")
        .start()
    )
    try:
        # the rest of the slow partition comes a little later: only alignment waits for it
        wait_for(
            query,
            lambda: any(p.numInputRows for p in query.recentProgress),
            240,
            "a first micro-batch",
        )
        write_times(kafka, topic, 0, range(begin + 10 * minute, begin + 60 * minute, 1000))
        wait_for(query, lambda: seen(query.recentProgress) >= 3660, 280, "all rows")
        query.processAllAvailable()
        return sum(
            o.numRowsDroppedByWatermark for p in query.recentProgress for o in p.stateOperators
        )
    finally:
        query.stop()


def seen(progress: list[object]) -> int:
    return sum(p.numInputRows for p in progress)  # type: ignore[attr-defined]


def write_times(kafka: KafkaCluster, topic: str, partition: int, times: range) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for moment in times:
        producer.produce(topic, b"x", partition=partition, timestamp=moment)
        producer.poll(0)
    assert producer.flush(30) == 0
