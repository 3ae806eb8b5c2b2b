"""A reader that is kept does not grow, and fetches nothing twice."""

import os
import subprocess
import sys

import psutil
import pytest
from confluent_kafka import Producer

from balanced_source.connectors.kafka import KafkaCluster as ClusterSpec
from balanced_source.host import SplitRange
from balanced_source_adapters.kafka.config import NoSecrets
from balanced_source_spark.kafka import native
from balanced_source_spark.kafka.settings import RangeReaderSettings, consumer_config
from testbed.kafka import KafkaCluster

BATCHES, PER_BATCH, PARTITIONS = 10_000, 5, 4


@pytest.mark.slow
@pytest.mark.skipif(not native.is_available(), reason="make native")
def test_ten_thousand_micro_batches_do_not_grow_the_worker(kafka: KafkaCluster, topic: str) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for number in range(BATCHES * PER_BATCH * PARTITIONS):
        producer.produce(topic, b"x" * 20, partition=number % PARTITIONS)
        if number % 10_000 == 0:
            producer.flush()
    producer.flush()
    spec = ClusterSpec(name="memory", bootstrap_servers=kafka.bootstrap)
    config = consumer_config(spec, NoSecrets(), client_id="memory")
    settings = RangeReaderSettings(cluster="memory", config=config, splits=PARTITIONS)
    rows, settled = 0, 0

    for batch in range(BATCHES):
        ranges = [
            SplitRange(
                split_id=("memory", topic, p), start=batch * PER_BATCH, end=(batch + 1) * PER_BATCH
            )
            for p in range(PARTITIONS)
        ]
        rows += sum(each.num_rows for each in native.read_ranges(ranges, settings))
        if batch == BATCHES // 4:
            settled = psutil.Process().memory_info().rss

    assert rows == BATCHES * PER_BATCH * PARTITIONS
    assert psutil.Process().memory_info().rss - settled < 32 << 20
    reads = [each for each in native.counters() if each["rows"] >= rows]
    assert reads[0]["sought"] == PARTITIONS, "only the first micro-batch has to seek"


@pytest.mark.skipif(not native.is_available(), reason="make native")
def test_what_was_fetched_of_a_forgotten_partition_is_freed(
    kafka: KafkaCluster, topic: str
) -> None:
    """A worker that serves many readers in turn would hold what it has fetched for each of them."""
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for _ in range(1000):
        producer.produce(topic, b"x" * 10_000, partition=0)
    producer.flush()
    size = 8 << 20

    run = [sys.executable, "-m", "support.native_forgetting", kafka.bootstrap, topic, str(size)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    told = subprocess.run(  # noqa: S603 - a module of this project
        run, stdout=subprocess.PIPE, text=True, check=True, timeout=120, env=environment
    )

    held, left = map(int, told.stdout.split()[-2:])
    assert held > size
    assert left < size / 4, f"{left} of {held} bytes are still in use"
