"""Asks brokers whether a log still has what was read of it, or was cut and written again.

A log loses its tail when a replica without it becomes the leader (unclean election), or when a
broker comes back with an older disk. Its end may soon lie beyond a reader's position again, so the
end alone does not tell. Leader epochs do (KIP-320). librdkafka asks for them when a new consumer is
assigned an offset with its epoch, and refuses to read, with the broker's answer in words, if the
records of that epoch end before the offset. There is no call that only asks: the consumer is
assigned an offset far behind the end of any log.
"""

import logging
import re
import time
from collections.abc import Mapping
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from balanced_source.api import SplitId
from balanced_source.connectors.kafka import KafkaSplitId
from balanced_source.documents.stream_offset import TermEnd
from balanced_source.host.ends import Mark
from balanced_source.host.log_check import Found, LogCheck
from balanced_source_adapters.kafka.offsets import partition_of

TIMEOUT: Final = 1.5
"""Seconds until partitions that have not answered count as unknown: the other partitions wait for
them."""

_WAIT: Final = 0.1
_MANY: Final = 500

_SETTINGS: Final[Mapping[str, Any]] = {
    "group.id": "balanced-source-log-check",  # librdkafka wants one; nothing is joined or committed
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "error",
    "enable.partition.eof": True,
    "isolation.level": "read_uncommitted",  # an open transaction is not a end of a log
    "fetch.message.max.bytes": 1024,
    "queued.max.messages.kbytes": 1024,
    "fetch.wait.max.ms": 10,
    "client.rack": "",  # a follower may be behind the position
}

_SILENT: Final = logging.getLogger("balanced_source.librdkafka")
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False

_FAR: Final = 2**62
"""An offset behind the end of any log."""

_ANSWER: Final = re.compile(r"broker end offset is (-?\d+) \(offset leader epoch (-?\d+)\)")
"""The broker's answer in librdkafka's words: where the records of the epoch, or of the newest one
before it, end."""


def check_logs(
    config: Mapping[str, Any],
    marks: Mapping[SplitId, tuple[Mark, int | None]],
    *,
    timeout: float = TIMEOUT,
) -> dict[SplitId, Found]:
    """Return for each partition whether and where its log was cut before the mark.

    Partitions that did not answer within `timeout` seconds are left out.

    Args:
        config: of a consumer.
        marks: partition → up to where, and in which leader epoch, it was read; and the present
            leader epoch, None: unknown.
        timeout: seconds.

    Raises:
        KafkaException: the client cannot be made.
    """
    checks = _Checks(marks)
    deadline = time.monotonic() + timeout
    while checks.open and time.monotonic() < deadline:
        # A new consumer for each question: librdkafka validates an epoch only when it learns of a
        # leader.
        consumer = Consumer({**config, **_SETTINGS, "logger": _SILENT})
        try:
            checks.ask(consumer, deadline)
        finally:
            consumer.close()
    return checks.found


class _Checks:
    """One call of `check_logs`."""

    def __init__(self, marks: Mapping[SplitId, tuple[Mark, int | None]]) -> None:
        self._marks = {KafkaSplitId.of(s)[1:]: (s, mark) for s, (mark, _) in marks.items()}
        self._checks = {
            s: LogCheck(mark, term) for s, (mark, term) in marks.items() if mark.term is not None
        }
        self.open = set(self._marks)
        """Topics and partitions of which not everything is known."""
        self.found: dict[SplitId, Found] = {}

    def ask(self, consumer: Consumer, deadline: float) -> None:
        """Ask one question about each partition.

        librdkafka asks only when it learns of a leader for the first time.
        """
        waiting = set(self.open)
        consumer.assign([self._assigned(*key) for key in sorted(waiting)])
        while waiting and time.monotonic() < deadline:
            for message in consumer.consume(_MANY, _WAIT):
                key = (message.topic() or "", message.partition() or 0)
                if key in waiting and self._take(consumer, key, message):
                    waiting.remove(key)
                    # Answered: nothing more of it should come while the others are waited for.
                    consumer.incremental_unassign([TopicPartition(*key)])

    def _assigned(self, topic: str, partition: int) -> TopicPartition:
        split_id, mark = self._marks[topic, partition]
        check = self._checks.get(split_id)
        if check is None or check.question is None:
            return TopicPartition(topic, partition, mark.position)
        # Behind any end, so that the broker's answer always says where the epoch ends.
        return TopicPartition(topic, partition, _FAR, leader_epoch=check.question)

    def _take(self, consumer: Consumer, key: tuple[str, int], message: Message) -> bool:
        """Take what is said of a partition; returns whether it answers the question."""
        split_id, mark = self._marks[key]
        error, check = message.error(), self._checks.get(split_id)
        if error is None or error.code() == KafkaError._PARTITION_EOF:
            self._note(key, Found(None))
        elif error.code() not in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
            return False  # librdkafka tries again
        # A broker without leader epochs, or other words of a newer librdkafka: only the end tells.
        elif (answer := _ANSWER.search(error.str())) is None or check is None:
            self._note(key, _compare_ends(consumer, split_id, mark))
        else:
            check.take(TermEnd(term=int(answer[2]), end=int(answer[1])))
            self._note(key, check.found() if check.question is None else None)
        return True

    def _note(self, key: tuple[str, int], found: Found | None) -> None:
        if found is not None:
            self.found[self._marks[key][0]] = found
            self.open.remove(key)


def _compare_ends(consumer: Consumer, split_id: SplitId, mark: Mark) -> Found | None:
    """The broker knows nothing of leader epochs.

    The first records may also be gone: their reader finds out.
    """
    try:
        _, high = consumer.get_watermark_offsets(partition_of(split_id), timeout=TIMEOUT)
    except KafkaException:
        return None
    return Found(high if high < mark.position else None)
