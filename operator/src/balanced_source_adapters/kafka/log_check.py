"""Asks brokers whether a log still has what was read of it, or was cut and written again.

A log loses its tail when a replica without it becomes the leader (unclean election), or when a broker comes back with
an older disk. Its end may soon lie beyond a reader's position again, so the end alone does not tell. Leader epochs do
(KIP-320). librdkafka asks for them when a new consumer is assigned an offset with its epoch, and refuses to read if
the log was cut before it; there is no call that only asks.
"""

import logging
import re
import time
from collections.abc import Mapping
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from balanced_source.api import SplitId
from balanced_source.connectors.kafka import KafkaSplitId
from balanced_source.host.ends import Mark
from balanced_source_adapters.kafka.offsets import partition_of

TIMEOUT: Final = 1.5
"""Seconds until partitions that have not answered count as unknown: the other partitions wait for them."""

_WAIT: Final = 0.1
_MANY: Final = 500

_SETTINGS: Final[Mapping[str, Any]] = {
    "group.id": "balanced-source-log-check",  # librdkafka wants one; nothing is joined or committed
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "error",
    "enable.partition.eof": True,
    "isolation.level": "read_uncommitted",  # an open transaction is no end of a log
    "fetch.message.max.bytes": 1024,
    "queued.max.messages.kbytes": 1024,
    "fetch.wait.max.ms": 10,
    "client.rack": "",  # a follower may be behind the position
}

_SILENT: Final = logging.getLogger("balanced_source.librdkafka")
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False

_END: Final = re.compile(r"broker end offset is (-?\d+)")
"""In what librdkafka says of a log that was cut: where the records of the epoch end now."""


def find_cuts(
    config: Mapping[str, Any], marks: Mapping[SplitId, Mark], *, timeout: float = TIMEOUT
) -> dict[SplitId, int | None]:
    """Return for each partition where its log was cut before the mark; None if it was not.

    Partitions that did not answer within `timeout` seconds are left out.

    Args:
        config: of a consumer.
        marks: partition → up to where, and in which leader epoch, it was read.
        timeout: seconds.

    Raises:
        KafkaException: the client cannot be made.
    """
    consumer = Consumer({**config, **_SETTINGS, "logger": _SILENT})
    try:
        return _Check(consumer, marks).run(time.monotonic() + timeout)
    finally:
        consumer.close()


class _Check:
    """One call of `find_cuts`."""

    def __init__(self, consumer: Consumer, marks: Mapping[SplitId, Mark]) -> None:
        self._consumer = consumer
        self._marks = {KafkaSplitId.of(s)[1:]: (s, mark) for s, mark in marks.items()}
        self._found: dict[SplitId, int | None] = {}

    def run(self, deadline: float) -> dict[SplitId, int | None]:
        self._consumer.assign([_assigned(topic, p, mark) for (topic, p), (_, mark) in self._marks.items()])
        while len(self._found) < len(self._marks) and time.monotonic() < deadline:
            for message in self._consumer.consume(_MANY, _WAIT):
                self._take(message)
        return self._found

    def _take(self, message: Message) -> None:
        key = (message.topic() or "", message.partition() or 0)
        split_id, mark = self._marks.get(key, (None, None))
        if split_id is None or mark is None or split_id in self._found:
            return
        error = message.error()
        if error is None or error.code() == KafkaError._PARTITION_EOF:
            self._found[split_id] = None
        elif error.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
            self._refused(split_id, mark, error)
        if split_id in self._found:
            self._consumer.incremental_unassign([TopicPartition(*key)])

    def _refused(self, split_id: SplitId, mark: Mark, error: KafkaError) -> None:
        told = _END.search(error.str())
        if told is not None:
            self._found[split_id] = min(mark.position, max(0, int(told.group(1))))
            return
        try:
            _, high = self._consumer.get_watermark_offsets(partition_of(split_id), timeout=TIMEOUT)
        except KafkaException:
            return
        # Otherwise the first records are gone, by retention: their reader finds out.
        self._found[split_id] = high if high < mark.position else None


def _assigned(topic: str, partition: int, mark: Mark) -> TopicPartition:
    if mark.term is None:
        return TopicPartition(topic, partition, mark.position)
    return TopicPartition(topic, partition, mark.position, leader_epoch=mark.term)
