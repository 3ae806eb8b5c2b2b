"""Puts answers about partitions together, as `OffsetsAdmin` does, for stand-ins of it."""

from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

from confluent_kafka import KafkaException, TopicPartition


def together(answers: Mapping[TopicPartition, Any]) -> Future[Mapping[TopicPartition, Any]]:
    """Return a future with these answers; an exception of the library counts as its error."""
    future: Future[Mapping[TopicPartition, Any]] = Future()
    future.set_result(
        {
            partition: told.args[0] if isinstance(told, KafkaException) else told
            for partition, told in answers.items()
        }
    )
    return future
