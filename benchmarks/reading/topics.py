"""What is read: topics with records that do not compress away, evenly spread or skewed.

There is a steady drip of records, too.
"""

import itertools
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from confluent_kafka import Producer

from testbed.kafka import KafkaCluster

_SETTINGS: Final = {
    "linger.ms": 20,
    "batch.size": 1 << 18,
    "queue.buffering.max.messages": 200_000,
    "log_level": 3,
}
_POOL: Final = 512


def fill(
    kafka: KafkaCluster, topic: str, *, partitions: int, records: int, size: int, zipf: float = 0.0
) -> None:
    """Make a topic and write `records` records of `size` bytes."""
    kafka.admin.create_topic(topic, partitions=partitions)
    producer = Producer({"bootstrap.servers": kafka.bootstrap, **_SETTINGS})
    values = [os.urandom(size) for _ in range(_POOL)]
    weights = [1 / (rank + 1) ** zipf for rank in range(partitions)]
    targets = random.Random(7).choices(range(partitions), weights, k=8192)
    pairs = zip(itertools.cycle(values), itertools.cycle(targets), strict=False)
    for value, partition in itertools.islice(pairs, records):
        _produce(producer, topic, value, partition)
    producer.flush()


def _produce(producer: Producer, topic: str, value: bytes, partition: int) -> None:
    """Hand over a record once there is room for it."""
    while True:
        try:
            producer.produce(topic, value, partition=partition)
        except BufferError:
            producer.poll(0.05)
        else:
            return


@contextmanager
def drip(kafka: KafkaCluster, topic: str, *, partitions: int, rate: int) -> Iterator[int]:
    """Records of 100 bytes at a steady rate, by another process; gives its number.

    Raises:
        RuntimeError: that process has ended before: what was measured is of a topic at rest.
    """
    process = subprocess.Popen(  # noqa: S603 - this very file
        [
            sys.executable,
            "-m",
            "benchmarks.reading.topics",
            kafka.bootstrap,
            topic,
            str(partitions),
            str(rate),
        ]
    )
    try:
        yield process.pid
        if (code := process.poll()) is not None:
            raise RuntimeError(f"the producer has ended with exit code {code}")
    finally:
        process.kill()
        process.wait()


def _keep_dripping(bootstrap: str, topic: str, partitions: int, rate: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 2, "log_level": 3})
    value, began = os.urandom(100), time.monotonic()
    for number in itertools.count(1):
        _produce(producer, topic, value, number % partitions)
        if number % 20 == 0:
            producer.poll(0)
            time.sleep(max(0.0, began + number / rate - time.monotonic()))


if __name__ == "__main__":
    _keep_dripping(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
