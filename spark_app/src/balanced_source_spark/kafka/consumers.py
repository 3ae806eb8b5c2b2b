"""Consumers that outlive a micro-batch.

Spark reuses its Python workers, so a module global survives.

A consumer holds no position of ours: each use assigns partitions with explicit offsets. (One that
was kept *with* its position lost 3–7 % of the rows silently, because messages past a batch's end
had already been taken.)
"""

import json
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from confluent_kafka import Consumer, KafkaException

from balanced_source.errors import BalancedSourceError
from balanced_source_adapters.kafka.config import without_secrets
from balanced_source_spark.kafka.pool import Pool

INTRODUCTION: Final = 1.0
"""Seconds that a cluster may take to say where the partitions of new topics are: librdkafka asks
after as long itself."""


class TaskConsumer(Consumer):
    """A consumer that looks for the partitions of topics as soon as it has to read them.

    librdkafka asks about topics when it connects, and later once a second: a partition of a topic
    that is new to the consumer would wait until then.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        """A consumer with this configuration; raises KafkaException as `Consumer` does."""
        super().__init__(dict(config))
        self._known: set[str] = set()

    def introduce(self, topics: Collection[str], *, patience: float = INTRODUCTION) -> None:
        """Ask where the partitions of these topics are, once per topic.

        Args:
            topics: names.
            patience: seconds, see `INTRODUCTION`. Without an answer librdkafka continues to ask,
                and the read says what is wrong if it stalls.
        """
        deadline = time.monotonic() + patience
        for topic in sorted(set(topics) - self._known):
            self._known.add(topic)
            left = deadline - time.monotonic()
            if left <= 0 or not self._asked(topic, left):
                return

    def _asked(self, topic: str, timeout: float) -> bool:
        try:
            self.list_topics(topic, timeout=timeout)
        except KafkaException:
            return False
        return True


_pool: Final[Pool[TaskConsumer]] = Pool()


@contextmanager
def borrowed_consumer(config: Mapping[str, Any], renewals: int = 0) -> Iterator[TaskConsumer]:
    """A consumer with this configuration; kept for the next use, unless the use failed.

    The client id names its owner. A worker that serves many readers hands a consumer on to another
    one, see `Pool`.

    Args:
        config: of librdkafka.
        renewals: of the cluster's topics, see `renewals_of`.
    """
    key = (_key(config), renewals)
    with _pool.borrowed(key, lambda: _made(config), owner=config.get("client.id")) as consumer:
        yield consumer
        # A position that is kept loses rows: messages beyond the range may have been taken already.
        consumer.unassign()


def _made(config: Mapping[str, Any]) -> TaskConsumer:
    try:
        return TaskConsumer(config)
    except KafkaException as error:  # quotes values, and the text ends in the query's error
        raise BalancedSourceError(without_secrets(str(error), config)) from None


def _key(config: Mapping[str, Any]) -> str:
    return json.dumps(
        sorted((name, value) for name, value in config.items() if name != "client.id"), default=str
    )
