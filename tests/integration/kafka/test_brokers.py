"""Brokers that die and return under a running query, and clusters of which one is silent."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from support.queries import Collector, start, wait_rows
from testbed.kafka import KafkaCluster
from testbed.waiting import wait_until

pytestmark = pytest.mark.thorough

TOPIC = "replicated"


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    with KafkaCluster(
        "three", tmp_path_factory.mktemp("kafka-three"), nodes=3, heap="256m"
    ) as cluster:
        cluster.admin.create_topic(TOPIC, partitions=6, config={"min.insync.replicas": "2"})
        yield cluster


def produce(cluster: KafkaCluster, count: int) -> None:
    """With all acknowledgements: what was told to be written survives the loss of a broker."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all", "log_level": 0})
    failed: list[object] = []
    for number in range(count):
        producer.produce(
            TOPIC,
            b"x",
            partition=number % 6,
            on_delivery=lambda error, _: failed.append(error) if error else None,
        )
    assert producer.flush(60) == 0
    assert not failed


def leaders(cluster: KafkaCluster) -> set[int]:
    partitions = cluster.admin.client.list_topics(TOPIC, timeout=10).topics[TOPIC].partitions
    return {partition.leader for partition in partitions.values()}


def test_every_record_arrives_once_while_each_broker_dies_in_turn(
    spark: SparkSession, three: KafkaCluster, tmp_path: Path
) -> None:
    """Leaders move to the others and back; the query neither fails nor repeats."""
    sink, expected = Collector(), 0
    query = start(
        spark,
        sink,
        tmp_path / "ck",
        **{
            "kafka.bootstrap.servers": three.bootstrap,
            "subscribe": TOPIC,
            "startingOffsets": "earliest",
        },
        parallelism="2",
        discoveryIntervalSeconds="2",
    )
    run = query.runId
    try:
        for node in (1, 2, 3):
            produce(three, 600)
            three.kill(node)
            wait_until(lambda gone=node: gone not in leaders(three), 60, "others to lead")
            produce(three, 600)
            expected += 1200
            wait_rows(query, sink, expected, timeout=120)
            three.start_node(node)
        assert query.runId == run
        assert query.exception() is None
    finally:
        query.stop()

    per_partition = expected // 6
    assert sink.records == Counter((TOPIC, p, o) for p in range(6) for o in range(per_partition))
