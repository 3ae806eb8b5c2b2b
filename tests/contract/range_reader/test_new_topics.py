"""Topics that are new to a kept consumer: librdkafka would look for them once a second."""

import pytest

from balanced_source_spark.kafka import native
from testbed.kafka import KafkaCluster

from .conftest import Reader

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(not native.is_available(), reason="make native"),
]


def asked(topics: int) -> float:
    """How often the kept consumer has asked that has read so many splits."""
    return next(each["asked"] for each in native.counters() if each["sought"] == topics)


def test_the_native_reader_asks_once_about_each_new_topic(kafka: KafkaCluster, topic: str) -> None:
    names = [f"{topic}-{number}" for number in range(4)]
    readers = [Reader(native.read_ranges, kafka, name) for name in names]
    for reader in readers:
        kafka.admin.create_topic(reader.topic, partitions=1)
        # One consumer for all of them: it differs from those of other tests.
        reader.properties["fetch.message.max.bytes"] = "1048577"
        reader.produce(2)

    first = [reader.offsets({0: (0, 1)}) for reader in readers]
    second = [reader.offsets({0: (1, 2)}) for reader in readers]

    assert first == [{(0, 0): 1}] * 4
    assert second == [{(0, 1): 1}] * 4
    assert asked(len(names)) == len(names)
