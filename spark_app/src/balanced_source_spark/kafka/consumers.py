"""Consumers that outlive a micro-batch: Spark reuses its Python workers, so a module global survives.

A consumer holds no position of ours: each use assigns partitions with explicit offsets. (One that was kept *with*
its position lost 3–7 % of the rows silently, because messages past a batch's end had already been taken.)
"""

import json
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from confluent_kafka import Consumer, KafkaException

from balanced_source.connectors.kafka import KafkaCluster
from balanced_source.errors import BalancedSourceError
from balanced_source_adapters.kafka_config import SecretReader, client_config, without_secrets

DEFAULTS: Final[Mapping[str, Any]] = {
    # librdkafka's default of 1000 ms is a twelfth of the throughput, 0 spins a core while the queue is full.
    "fetch.queue.backoff.ms": 2,
    "queued.min.messages": 20_000,
    # A fetch that waits at the end of the log holds back one for a partition that has just been added; the
    # broker's answer to a record that arrives is not held back by this.
    "fetch.wait.max.ms": 20,
}
"""Measured settings; users may override them."""

PREFETCH: Final = 64 << 20
"""Bytes that one reader fetches ahead at most, half of them in its queues and half on their way."""

_LEAST: Final = 16 << 10
"""Bytes: less per partition would be a request per handful of records."""

_MOST: Final = 1 << 20
"""Bytes: what a broker gives of one partition at once unless it is told otherwise."""

RACK: Final = "BALANCED_SOURCE_RACK"
"""Environment variable of executors: where they are, so that they fetch from replicas nearby; `client.rack` of the
cluster wins. Looked at when a split is read, not when the query is planned."""

FORCED: Final[Mapping[str, Any]] = {
    "group.id": "balanced-source-readers",  # librdkafka wants one; nothing is ever joined or committed
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "error",  # a missing offset is lost data, never a silent jump
    "enable.partition.eof": True,
}
"""What exact ranges depend on."""


def bounds(splits: int, prefetch: int, *, queue_per_split: bool) -> dict[str, int]:
    """Settings that keep what one consumer has fetched ahead within `prefetch` bytes.

    `queued.max.messages.kbytes` is per partition when partitions have queues of their own, else for all together.
    A single record that is larger is delivered all the same.
    """
    share = prefetch // 2 // max(1, splits)
    queued = share if queue_per_split else prefetch // 2
    return {
        "queued.max.messages.kbytes": max(_LEAST, queued) // 1024,
        "max.partition.fetch.bytes": min(_MOST, max(_LEAST, share)),
    }


_idle: dict[str, list[Consumer]] = {}
_lock = threading.Lock()


def consumer_config(cluster: KafkaCluster, secrets: SecretReader, *, client_id: str) -> dict[str, Any]:
    """Configuration of a reader's consumer. Holds secrets: never log it."""
    rack = os.environ.get(RACK, "")
    return {
        **DEFAULTS,
        **({"client.rack": rack} if rack else {}),
        **client_config(cluster, secrets, client_id=client_id),
        **FORCED,
    }


@contextmanager
def borrowed_consumer(config: Mapping[str, Any]) -> Iterator[Consumer]:
    """A consumer with this configuration; kept for the next use, unless the use failed."""
    key = _key(config)
    with _lock:
        pool = _idle.setdefault(key, [])
        consumer = pool.pop() if pool else None
    consumer = consumer or _made(config)
    try:
        yield consumer
        consumer.unassign()
    except BaseException:
        consumer.close()
        raise
    with _lock:
        _idle[key].append(consumer)


def _made(config: Mapping[str, Any]) -> Consumer:
    try:
        return Consumer(dict(config))
    except KafkaException as error:  # quotes values, and the text ends in the query's error
        raise BalancedSourceError(without_secrets(str(error), config)) from None


def _key(config: Mapping[str, Any]) -> str:
    # The process is part of it: a consumer does not survive a fork.
    return json.dumps([os.getpid(), sorted(config.items())])
