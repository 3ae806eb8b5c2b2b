"""Records of a topic, read with Kafka's own client."""

from typing import NamedTuple

from confluent_kafka import Consumer, TopicPartition

from testbed.kafka import KafkaCluster

_PATIENCE = 60.0
"""Seconds for which no record may come."""


class TopicRecord(NamedTuple):
    """One record."""

    partition: int | None
    key: bytes | None
    value: bytes | None


def records_of(kafka: KafkaCluster, topic: str) -> list[TopicRecord]:
    """Read a topic to its present end.

    Raises:
        AssertionError: it has records that cannot be read.
    """
    ends = {partition: end for partition, (_, end) in kafka.admin.offsets(topic).items()}
    settings = {"bootstrap.servers": kafka.bootstrap, "group.id": topic}
    consumer = Consumer({**settings, "enable.auto.commit": False})
    try:
        consumer.assign([TopicPartition(topic, partition, 0) for partition in ends])
        found: list[TopicRecord] = []
        while len(found) < sum(ends.values()):
            messages = consumer.consume(10_000, timeout=_PATIENCE)
            assert messages, f"{topic} has {sum(ends.values())} records, and {len(found)} were read"
            found += [TopicRecord(m.partition(), m.key(), m.value()) for m in messages]
        return found
    finally:
        consumer.close()
