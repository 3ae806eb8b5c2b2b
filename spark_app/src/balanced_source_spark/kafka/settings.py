"""How a reader reads, for both implementations.

Settings of its consumer, and the errors that both raise.

Neither client is imported here: a task pays for the one that serves it.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from balanced_source.api import SecretReader
from balanced_source.connectors.kafka import KafkaCluster
from balanced_source.connectors.kafka.titles import titled
from balanced_source.documents.environment import FORMER_ZONE, ZONE
from balanced_source.errors import BalancedSourceError
from balanced_source_adapters.kafka.config import client_config
from balanced_source_spark.kafka.names import PLAIN
from balanced_source_spark.kafka.topic_watch import Interrupt

STALL: Final = 120.0
"""Seconds without any progress until the task fails, like ``kafkaConsumer.pollTimeoutMs`` of
Spark's own source."""

DEFAULTS: Final[Mapping[str, Any]] = {
    # librdkafka's default of 1000 ms is a twelfth of the throughput, 0 spins a core while the queue
    # is full.
    "fetch.queue.backoff.ms": 2,
    "queued.min.messages": 20_000,
    # A fetch that waits at the end of the log holds back one for a partition that has just been
    # added; the broker's answer to a record that arrives is not held back by this.
    "fetch.wait.max.ms": 20,
}
"""Measured settings; users may override them."""

PREFETCH: Final = 64 << 20
"""Bytes that one reader fetches ahead at most, half of them in its queues and half on their way."""

_LEAST: Final = 16 << 10
"""Bytes: less per partition would be a request per handful of records."""

_MOST: Final = 1 << 20
"""Bytes: what a broker gives of one partition at once unless it is told otherwise."""

FORCED: Final[Mapping[str, Any]] = {
    # librdkafka wants one; nothing is ever joined or committed
    "group.id": "balanced-source-readers",
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "error",  # a missing offset is lost data, never a silent jump
    "enable.partition.eof": True,
}
"""What exact ranges depend on."""


NO_TEXT: Final = (SystemError, UnicodeDecodeError)
"""What Kafka's Python client raises for headers whose keys are not UTF-8."""


def bounds(splits: int, prefetch: int, *, queue_per_split: bool) -> dict[str, int]:
    """Settings that keep what one consumer has fetched ahead within `prefetch` bytes.

    `queued.max.messages.kbytes` is per partition when partitions have queues of their own, else for
    all together. A single record that is larger is delivered all the same.
    """
    share = prefetch // 2 // max(1, splits)
    queued = share if queue_per_split else prefetch // 2
    return {
        "queued.max.messages.kbytes": max(_LEAST, queued) // 1024,
        "max.partition.fetch.bytes": min(_MOST, max(_LEAST, share)),
    }


class OffsetsLostError(BalancedSourceError):
    """Records of a range are gone: deleted by retention, or the topic was recreated."""


class LogRewrittenError(OffsetsLostError):
    """The log was cut after a range was planned: its offsets have other records or none (KIP-320).

    Attributes:
        cuts: topic and partition → first offset that was cut, of all for which it is known.
    """

    def __init__(self, message: str, *, cuts: Mapping[tuple[str, int], int]) -> None:
        super().__init__(message)
        self.cuts = dict(cuts)


class ReadRefusedError(BalancedSourceError):
    """The broker refuses to be read, for a reason that waiting does not mend, e.g. a password."""


class UnreadableHeadersError(BalancedSourceError):
    """The client cannot return the headers of a record."""


class ReadStalledError(BalancedSourceError):
    """The broker delivered nothing for too long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeReaderSettings:
    """How ranges are read.

    Attributes:
        cluster: name, a column of the rows.
        title: what messages call the cluster, if not by its name.
        config: of the consumer.
        columns: of the rows, in this order.
        reader: which reader reads; a consumer that is kept serves the same one again.
        stall: seconds, see `STALL`.
        splits: how many the reader owns; its memory is divided by them.
        prefetch: bytes, see `PREFETCH`.
        implementation: `auto`, `native` or `python`.
        interrupt: ends the read with ReadStalledError when it is set.
    """

    cluster: str
    config: Mapping[str, Any]
    title: str = ""
    columns: tuple[str, ...] = PLAIN
    reader: int = 0
    stall: float = STALL
    splits: int = 1
    prefetch: int = PREFETCH
    implementation: str = "auto"
    interrupt: Interrupt = field(default_factory=Interrupt)

    @property
    def where(self) -> str:
        """What messages call the cluster."""
        return titled(self.cluster, self.title)

    def consumer(self, *, queue_per_split: bool) -> Mapping[str, Any]:
        """Configuration of the consumer; what the user has set goes first."""
        # so that one more split needs no other consumer
        rounded = 1 << max(0, self.splits - 1).bit_length()
        return {**bounds(rounded, self.prefetch, queue_per_split=queue_per_split), **self.config}


def consumer_config(
    cluster: KafkaCluster, secrets: SecretReader, *, client_id: str
) -> dict[str, Any]:
    """Configuration of a reader's consumer; `client.rack` of the cluster wins.

    Holds secrets: never log it.

    The zone is looked up when a split is read, not when the query is planned.
    """
    rack = os.environ.get(FORMER_ZONE) or os.environ.get(ZONE, "")
    return {
        **DEFAULTS,
        **({"client.rack": rack} if rack else {}),
        **client_config(cluster, secrets, client_id=client_id),
        **FORCED,
    }
