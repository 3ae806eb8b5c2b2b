"""Who takes part in `make bench-read` reads everything; how fast is not asked here."""

import pytest
from benchmarks.reading.contestants import (
    OURS,
    OURS_CUT,
    OURS_VALUE,
    PYTHON,
    SPARK_TUNED,
    Contestant,
    bare_loop,
)
from benchmarks.reading.session import read_backlog
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from testbed.kafka import KafkaCluster

RECORDS = 300


@pytest.fixture
def filled(kafka: KafkaCluster, topic: str) -> str:
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for number in range(RECORDS):
        producer.produce(topic, b"value", partition=number % 3)
    assert producer.flush(30) == 0
    return topic


@pytest.mark.parametrize(
    "contestant",
    [OURS, OURS_CUT, OURS_VALUE, PYTHON, SPARK_TUNED],
    ids=lambda contestant: contestant.name,
)
def test_each_source_reads_the_backlog(
    spark: SparkSession, kafka: KafkaCluster, filled: str, contestant: Contestant
) -> None:
    read = read_backlog(spark, kafka, filled, contestant, readers=2, ignored=kafka.pids)
    assert read.rows == RECORDS


def test_the_bare_loop_reads_the_backlog(kafka: KafkaCluster, filled: str) -> None:
    assert bare_loop(kafka, filled, readers=2)[2] == RECORDS
