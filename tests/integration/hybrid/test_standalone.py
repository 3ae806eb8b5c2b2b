"""Parquet files, then Kafka, in one query on a real Spark with a real broker.

Each record once, whatever happens.
"""

import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from balanced_source_spark import rescale
from support.queries import Collector, Record, start, wait_rows
from testbed.kafka import KafkaCluster

pytestmark = [pytest.mark.integration, pytest.mark.thorough]

COLUMNS = "key,value,topic,partition,offset,timestamp"
DDL = "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP"
PARTITIONS, HISTORY, LIVE = 3, 400, 100
BEGIN = int(time.time() * 1000) - 3_600_000
"""Time of the first record of each partition, in milliseconds; the next ones follow by one.

The broker keeps a week.
"""


def produce(kafka: KafkaCluster, topic: str, numbers: range) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for partition in range(PARTITIONS):
        for number in numbers:
            producer.produce(
                topic, key=b"k", value=b"v", partition=partition, timestamp=BEGIN + number
            )
    assert producer.flush(30) == 0


def archive(folder: Path, topic: str, count: int = HISTORY) -> None:
    """Write what a topic has as Parquet files, one for each partition."""
    folder.mkdir()
    for partition in range(PARTITIONS):
        rows = {
            "key": [b"k"] * count,
            "value": [b"v"] * count,
            "topic": [topic] * count,
            "partition": pa.array([partition] * count, pa.int32()),
            "offset": list(range(count)),
            "timestamp": pa.array([BEGIN + n for n in range(count)], pa.timestamp("ms", tz="UTC")),
        }
        pq.write_table(pa.table(rows), folder / f"{partition}.parquet", row_group_size=50)


def parts(
    kafka: KafkaCluster, topic: str, folder: Path, start_after: dict[str, Any] | None, **live: str
) -> str:
    files = {
        "connector": "files",
        "path": str(folder),
        "fileFormat": "parquet",
        "schema": DDL,
        "metadataColumns": False,
        "splitBytes": 2000,
    }
    after = {"startAfter": start_after} if start_after is not None else {}
    brokers = {"kafka.bootstrap.servers": kafka.bootstrap, "subscribe": topic, "columns": COLUMNS}
    return json.dumps([files, {"connector": "kafka", **brokers, **after, **live}])


def options(tmp_path: Path, **more: str) -> dict[str, str]:
    return {"connector": "hybrid", "parallelism": "2", "stateDir": str(tmp_path / "state"), **more}


def expected(topic: str, until: int) -> "Counter[Record]":
    return Counter(
        (topic, partition, offset) for partition in range(PARTITIONS) for offset in range(until)
    )


def check_order(sink: Collector, count: int = HISTORY) -> None:
    """The history is read before the first live record, and then each partition in its order."""
    rows = [row for row in sink.rows if row.offset >= count]
    first_live = min(
        number for number, batch in sink.batches.items() for row in batch if row.offset >= count
    )
    last_old = max(
        number for number, batch in sink.batches.items() for row in batch if row.offset < count
    )
    assert last_old < first_live
    for partition in range(PARTITIONS):
        offsets = [row.offset for row in rows if row.partition == partition]
        assert offsets == sorted(offsets)


@pytest.mark.scenario("Q1", "Q2", "Q3", "Q4")
@pytest.mark.parametrize(
    "start_after", [{"offsets": {}}, {"time": "timestamp"}], ids=["offsets", "time"]
)
def test_each_record_once_through_rescales_and_restarts(
    spark: SparkSession,
    kafka: KafkaCluster,
    topic: str,
    tmp_path: Path,
    start_after: dict[str, Any],
) -> None:
    """Without an operator: 2, 4, 1, 3 and 2 readers, and two restarts."""
    produce(kafka, topic, range(HISTORY + LIVE))
    archive(tmp_path / "in", topic)
    sink, given = (
        Collector(),
        options(tmp_path, parts=parts(kafka, topic, tmp_path / "in", start_after)),
    )

    query = start(spark, sink, tmp_path / "ck", **given)
    wait_rows(query, sink, 300)
    rescale(query, 4)  # while files are read
    wait_rows(query, sink, 600)
    query.stop()
    query = start(spark, sink, tmp_path / "ck", **{**given, "parallelism": "1"})
    wait_rows(query, sink, PARTITIONS * (HISTORY + LIVE))
    rescale(query, 3)  # while Kafka is read
    produce(kafka, topic, range(HISTORY + LIVE, HISTORY + 2 * LIVE))
    wait_rows(query, sink, PARTITIONS * (HISTORY + 2 * LIVE))
    query.stop()
    query = start(spark, sink, tmp_path / "ck", **given)
    produce(kafka, topic, range(HISTORY + 2 * LIVE, HISTORY + 3 * LIVE))
    wait_rows(query, sink, PARTITIONS * (HISTORY + 3 * LIVE))
    query.stop()

    assert sink.records == expected(topic, HISTORY + 3 * LIVE)
    check_order(sink)


def test_a_batch_query_reads_both_parts(
    spark: SparkSession, kafka: KafkaCluster, topic: str, tmp_path: Path
) -> None:
    produce(kafka, topic, range(HISTORY + LIVE))
    archive(tmp_path / "in", topic)
    given = {"connector": "hybrid", "parts": parts(kafka, topic, tmp_path / "in", {"offsets": {}})}

    rows = spark.read.format("balanced").options(**given).load().collect()

    assert Counter((row.topic, row.partition, row.offset) for row in rows) == expected(
        topic, HISTORY + LIVE
    )


def test_options_that_exclude_each_other_are_named(
    spark: SparkSession, kafka: KafkaCluster, topic: str, tmp_path: Path
) -> None:
    def refusal(parts: str, **more: str) -> str:
        with pytest.raises(Exception, match="option") as raised:
            spark.readStream.format("balanced").options(
                **options(tmp_path, parts=parts, **more)
            ).load()
        return str(raised.value)

    good = json.loads(parts(kafka, topic, tmp_path / "in", None))
    assert "have different columns" in refusal(
        json.dumps([good[0], {**good[1], "columns": "value"}])
    )
    assert "never ends" in refusal(json.dumps([good[1], good[0]]))
    assert "did you mean" in refusal(json.dumps([good[0], {**good[1], "subscribes": "x"}]))
    assert "cannot be a part" in refusal(json.dumps([{"connector": "kinesis"}, good[1]]))
    assert "write Parquet files" in refusal(
        json.dumps(
            [{**good[0], "fileFormat": "json"}, {**good[1], "startAfter": {"time": "timestamp"}}]
        )
    )
