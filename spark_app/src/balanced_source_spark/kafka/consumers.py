"""Consumers that outlive a micro-batch.

Spark reuses its Python workers, so a module global survives.

A consumer holds no position of ours: each use assigns partitions with explicit offsets. (One that
was kept *with* its position lost 3–7 % of the rows silently, because messages past a batch's end
had already been taken.)
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from confluent_kafka import Consumer, KafkaException

from balanced_source.errors import BalancedSourceError
from balanced_source_adapters.kafka.config import without_secrets
from balanced_source_spark.kafka.pool import Pool

_pool: Final[Pool[Consumer]] = Pool()


@contextmanager
def borrowed_consumer(config: Mapping[str, Any]) -> Iterator[Consumer]:
    """A consumer with this configuration; kept for the next use, unless the use failed.

    The client id names its owner. A worker that serves many readers hands a consumer on to another
    one, see `Pool`.
    """
    with _pool.borrowed(
        _key(config), lambda: _made(config), owner=config.get("client.id")
    ) as consumer:
        yield consumer
        # A position that is kept loses rows: messages beyond the range may have been taken already.
        consumer.unassign()


def _made(config: Mapping[str, Any]) -> Consumer:
    try:
        return Consumer(dict(config))
    except KafkaException as error:  # quotes values, and the text ends in the query's error
        raise BalancedSourceError(without_secrets(str(error), config)) from None


def _key(config: Mapping[str, Any]) -> str:
    return json.dumps(
        sorted((name, value) for name, value in config.items() if name != "client.id"), default=str
    )
