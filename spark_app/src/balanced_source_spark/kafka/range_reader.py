"""Reads exact offset ranges of many partitions with one consumer per cluster.

The reference implementation.

A range ends by offset, never by counting messages: transaction markers and compaction leave offsets
that are never delivered. It has ended when a message at ``end − 1`` or beyond was seen, or when the
broker says that the partition has nothing before ``end`` any more (partition EOF at or past it).
"""

import time
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa
from confluent_kafka import KafkaError, Message, TopicPartition

from balanced_source.connectors.kafka import KafkaSplitId
from balanced_source.host import SplitRange
from balanced_source.names import counted
from balanced_source_spark.kafka.chunk import Chunk, Run
from balanced_source_spark.kafka.columns import collector_paused, record_batch
from balanced_source_spark.kafka.consumers import TaskConsumer, borrowed_consumer
from balanced_source_spark.kafka.renewals import renewals_of
from balanced_source_spark.kafka.settings import (
    LogRewrittenError,
    OffsetsLostError,
    RangeReaderSettings,
    ReadRefusedError,
    ReadStalledError,
)

CHUNK: Final = 2000
"""Messages per call; 1000 to 2000 measured best in Python."""

WAIT: Final = 0.1
"""Seconds that one call waits at most.

`consume` waits them out when fewer messages remain than were asked for.
"""

_Key = tuple[str, int]


def read_ranges(
    ranges: Sequence[SplitRange], settings: RangeReaderSettings
) -> Iterator[pa.RecordBatch]:
    """All records of the ranges, in offset order within each split.

    Raises:
        OffsetsLostError: an offset of a range does not exist any more.
        LogRewrittenError: a log was cut and written again after the range was planned.
        ReadStalledError: no progress for `RangeReaderSettings.stall` seconds.
    """
    renewals = renewals_of(settings.cluster, ranges)
    with borrowed_consumer(settings.consumer(queue_per_split=False), renewals) as consumer:
        yield from _RangesInProgress(consumer, ranges, settings).batches()


class _RangesInProgress:
    """Progress of one call of `read_ranges`."""

    def __init__(
        self, consumer: TaskConsumer, ranges: Sequence[SplitRange], settings: RangeReaderSettings
    ) -> None:
        self._consumer = consumer
        self._settings = settings
        self._next: dict[_Key, int] = {}
        self._ends: dict[_Key, int] = {}
        self._terms: dict[_Key, int | None] = {}
        for piece in ranges:
            key = KafkaSplitId.of(piece.split_id)[1:]
            self._terms[key] = piece.term
            self._next[key] = int(piece.start or 0)
            self._ends[key] = int(piece.end or 0)
        self._topics = {topic for topic, _ in self._next}
        self._topic = next(iter(self._topics)) if len(self._topics) == 1 else None
        self._last_error: KafkaError | None = None
        self._refreshed: set[str] = set()

    def batches(self) -> Iterator[pa.RecordBatch]:
        self._consumer.assign(
            [TopicPartition(t, p, offset) for (t, p), offset in self._next.items()]
        )
        self._consumer.introduce(self._topics)
        deadline = time.monotonic() + self._settings.stall
        while self._ends:
            left = sum(end - self._next[key] for key, end in self._ends.items())
            waiting = len(self._ends)
            messages = self._consumer.consume(min(CHUNK, max(left, 1)), WAIT)
            if self._settings.interrupt.is_set:
                raise ReadStalledError(f"{self._settings.where}: the read was interrupted")
            # Thousands of short-lived objects would make the garbage collector run in each chunk.
            with collector_paused():
                accepted = self._accepted(messages)
                batch = self._batch(accepted) if len(accepted) else None
            if batch is not None:
                yield batch
            # Errors are no progress: a broker that is away is reported again and again.
            if batch is not None or len(self._ends) < waiting:
                # After the rows were taken: that time is not the broker's.
                deadline = time.monotonic() + self._settings.stall
            elif time.monotonic() > deadline:
                raise ReadStalledError(self._stalled())

    def _batch(self, chunk: Chunk) -> pa.RecordBatch:
        return record_batch(chunk, cluster=self._settings.cluster, columns=self._settings.columns)

    def _accepted(self, messages: Sequence[Message]) -> Chunk:
        """Those that belong to their ranges.

        The end of a partition is told after the records before it.
        """
        failed = [m for m in messages if m.error() is not None]
        fine = [m for m in messages if m.error() is None] if failed else messages
        accepted = self._within(Chunk(fine, topic=self._topic))
        # After the records: the end of a partition is told behind the last of them.
        for message in failed:
            self._on_error(message)
        return accepted

    def _within(self, chunk: Chunk) -> Chunk:
        return chunk.part([self._piece(chunk, run) for run in chunk.runs()])

    def _piece(self, chunk: Chunk, run: Run) -> tuple[int, int]:
        """Take note of a run; first and last index of what belongs to its range."""
        end, begin = self._ends.get(run.key), self._next.get(run.key, 0)
        if end is None or run.last < begin:
            return run.start, run.start  # past its end, or before a seek took effect
        # Before anything of the run is delivered.
        self._check_term(chunk, run, end)
        # By offset and not by number: compaction and transaction markers leave gaps.
        if run.last >= end - 1:
            self._finish(run.key)
        else:
            self._next[run.key] = run.last + 1
        return chunk.index(run, begin), chunk.index(run, end)

    def _check_term(self, chunk: Chunk, run: Run, end: int) -> None:
        """Leader epochs grow with offsets, so that of the last record of a range is the newest."""
        term, messages = self._terms.get(run.key), chunk.messages
        last = chunk.index(run, end) - 1
        if term is None or last < run.start or _epoch(messages[last]) <= term:
            return
        first = messages[bisect_right(messages, term, run.start, last, key=_epoch)]
        offset = first.offset() or 0
        raise LogRewrittenError(
            f"{self._settings.where}, topic {run.key[0]}, partition {run.key[1]}: the log"
            f" was cut and written again after this micro-batch was planned (offset {offset} is of"
            f" leader epoch {_epoch(first)}, the micro-batch of {term})",
            cuts={run.key: offset},
        )

    def _finish(self, key: _Key) -> None:
        """Stop fetching records that no reader takes.

        A pause is not enough: librdkafka may take a second to fetch again after one.
        """
        del self._ends[key]
        self._consumer.incremental_unassign([TopicPartition(*key)])

    def _on_error(self, message: Message) -> None:
        error = message.error()
        assert error is not None  # noqa: S101 - that is why it is here
        code = error.code()
        key, offset = _key_of(message), message.offset() or 0
        if code == KafkaError._PARTITION_EOF:
            if key in self._ends and offset >= self._ends[key]:
                self._finish(key)
        elif code in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
            raise OffsetsLostError(
                f"{self._settings.where}, topic {key[0]}, partition {key[1]}: offset"
                f" {self._next.get(key)} does not exist any more ({error.str()}): records were"
                " deleted before they were read, or the topic was recreated"
            )
        elif code in _UNKNOWN and key[0] not in self._refreshed:
            self._refresh(key[0])
        elif error.fatal() or code in _HOPELESS or code in _UNKNOWN:
            raise ReadRefusedError(f"{self._settings.where}, topic {key[0]}: {error.str()}")
        else:
            self._last_error = error

    def _refresh(self, topic: str) -> None:
        """A consumer that was kept knows nothing of partitions that were added since.

        Let it look again.
        """
        self._refreshed.add(topic)
        self._consumer.list_topics(topic, timeout=self._settings.stall)

    def _stalled(self) -> str:
        key, end = next(iter(self._ends.items()))
        why = f": {self._last_error.str()}" if self._last_error is not None else ""
        return (
            f"{self._settings.where}: nothing arrived for {self._settings.stall:.0f} s;"
            f" waiting for {counted(len(self._ends), 'range')}, e.g. topic {key[0]},"
            f" partition {key[1]}, {self._next[key]} to {end}{why}"
        )


def _epoch(message: Message) -> int:
    """Leader epoch; −1 if the log does not say."""
    epoch = message.leader_epoch()
    return -1 if epoch is None else epoch


def _key_of(message: Message) -> _Key:
    return message.topic() or "", message.partition() or 0


_HOPELESS: Final = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError._AUTHENTICATION,
    }
)
"""Errors that waiting does not mend: the task fails with what the broker said."""

_UNKNOWN: Final = frozenset(
    {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_PARTITION, KafkaError._UNKNOWN_TOPIC}
)
"""A partition that the client, or the broker that it asked, has not heard of yet; hopeless if it
stays so."""
