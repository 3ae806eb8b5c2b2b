"""How the range reader asks its consumer.

What a broker makes of it is in `tests/contract/range_reader`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from confluent_kafka import KafkaError, Message
from hypothesis import given
from hypothesis import strategies as st

from balanced_source.host import SplitRange
from balanced_source_spark.kafka import range_reader
from balanced_source_spark.kafka.range_reader import CHUNK, read_ranges
from balanced_source_spark.kafka.settings import (
    LogRewrittenError,
    OffsetsLostError,
    RangeReaderSettings,
    ReadRefusedError,
    ReadStalledError,
)
from support.messages import message


class Consumer:
    """Delivers `portion` messages per call, however many it is asked for.

    Notes how many that was.
    """

    def __init__(self, portion: int) -> None:
        self.portion = portion
        self.asked: list[int] = []
        self.given_up: list[tuple[str, int]] = []
        self.introduced: list[set[str]] = []
        self._next = -1

    def assign(self, partitions: list[Any]) -> None:
        self._next = partitions[0].offset

    def introduce(self, topics: set[str]) -> None:
        assert self._next >= 0, "librdkafka notes the leaders of topics that it knows"
        self.introduced.append(topics)

    def incremental_unassign(self, partitions: list[Any]) -> None:
        self.given_up += [(p.topic, p.partition) for p in partitions]

    def consume(self, count: int, timeout: float) -> list[Message]:
        self.asked.append(count)
        offsets = range(self._next, self._next + min(count, self.portion))
        self._next = offsets.stop
        return [message(offset=offset) for offset in offsets]


def batches(
    monkeypatch: pytest.MonkeyPatch, consumer: Consumer, start: int, end: int, *, stall: float = 60
) -> Iterator[Any]:
    @contextmanager
    def borrowed(*_: Any) -> Iterator[Consumer]:
        yield consumer

    monkeypatch.setattr(range_reader, "borrowed_consumer", borrowed)
    piece = SplitRange(split_id=("c", "t", 0), start=start, end=end)
    yield from read_ranges([piece], RangeReaderSettings(cluster="c", config={}, stall=stall))


def read(
    monkeypatch: pytest.MonkeyPatch, consumer: Consumer, start: int, end: int, *, stall: float = 60
) -> list[int]:
    return [
        offset
        for batch in batches(monkeypatch, consumer, start, end, stall=stall)
        for offset in batch.column("offset").to_pylist()
    ]


def test_it_never_asks_for_more_than_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """`consume` waits out its timeout when fewer messages remain than were asked for."""
    consumer = Consumer(portion=3)

    assert read(monkeypatch, consumer, 5, 15) == list(range(5, 15))
    assert consumer.asked == [10, 7, 4, 1]
    assert consumer.given_up == [("t", 0)], "nothing is fetched that no reader takes"
    assert consumer.introduced == [{"t"}]


def test_it_asks_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    consumer = Consumer(portion=10**6)

    assert len(read(monkeypatch, consumer, 0, 2 * CHUNK + 7)) == 2 * CHUNK + 7
    assert consumer.asked == [CHUNK, CHUNK, 7]


def test_errors_of_an_absent_broker_do_not_put_off_the_end_of_patience(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    down = KafkaError(KafkaError._ALL_BROKERS_DOWN, "no broker answers")

    class Absent(Consumer):
        def consume(self, count: int, timeout: float) -> list[Any]:
            self.asked.append(count)
            assert len(self.asked) < 5, "it waits without an end"
            return [message(error=down)]

    with pytest.raises(ReadStalledError, match="no broker answers"):
        read(monkeypatch, Absent(portion=0), 0, 5, stall=0)


def test_time_that_spark_takes_for_rows_is_not_the_brokers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0.0]
    monkeypatch.setattr(range_reader.time, "monotonic", lambda: now[0])

    class Slow(Consumer):
        def consume(self, count: int, timeout: float) -> list[Message]:
            is_empty = len(self.asked) % 2 == 1
            found = super().consume(count, timeout)
            if not is_empty:
                return found
            self._next -= len(found)
            return []

    consumer = Slow(portion=1)
    for _ in batches(monkeypatch, consumer, 0, 3, stall=5):
        now[0] += 60

    assert consumer.given_up == [("t", 0)]


RANGES = {("t", 0): (3, 9), ("t", 1): (0, 4), ("u", 0): (5, 6)}
"""What is to be read; partition 7 is no one's."""

messages = st.builds(
    message,
    topic=st.sampled_from(("t", "u")),
    partition=st.sampled_from((0, 1, 7)),
    offset=st.integers(0, 12),
)


def one_by_one(delivered: list[list[Any]]) -> list[tuple[str, int, int]]:
    """What belongs to the ranges, by looking at each message for itself."""
    begins, ends = {k: r[0] for k, r in RANGES.items()}, {k: r[1] for k, r in RANGES.items()}
    taken = []
    for found in (m for chunk in delivered for m in chunk):
        key, offset = (found.topic(), found.partition()), found.offset()
        if key in ends and offset >= begins[key]:
            if offset < ends[key]:
                taken.append((*key, offset))
            if offset >= ends[key] - 1:
                del ends[key]
            else:
                begins[key] = offset + 1
    return taken


@given(st.lists(st.lists(messages, max_size=8), max_size=6))
def test_each_range_gets_its_own_records_in_order_and_once_under_any_delivery(
    delivered: list[list[Message]],
) -> None:
    pieces = [
        SplitRange(split_id=("c", *key), start=start, end=end)
        for key, (start, end) in RANGES.items()
    ]
    consumer: Any = Consumer(portion=0)
    reading = range_reader._RangesInProgress(
        consumer, pieces, RangeReaderSettings(cluster="c", config={})
    )

    chunks: list[Any] = delivered
    accepted = [reading._accepted(chunk).messages for chunk in chunks]

    got = [(m.topic(), m.partition(), m.offset()) for chunk in accepted for m in chunk]
    assert got == one_by_one(delivered)
    assert len(consumer.given_up) == len(set(consumer.given_up))


def failed(code: int, *, offset: int = 0, partition: int = 0) -> Message:
    """An error that librdkafka delivers beside records."""
    error = KafkaError(code, "told by the broker")
    return message(error=error, offset=offset, partition=partition)


class Faulty(Consumer):
    """Delivers errors first; afterwards one record per call."""

    def __init__(self, *errors: Any) -> None:
        super().__init__(portion=1)
        self.errors = [*errors]
        self.looked_at: list[str] = []

    def consume(self, count: int, timeout: float) -> list[Any]:
        return [self.errors.pop(0)] if self.errors else super().consume(count, timeout)

    def list_topics(self, topic: str, *, timeout: float) -> None:
        self.looked_at.append(topic)


@pytest.mark.parametrize(
    "code",
    [
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError._AUTHENTICATION,
    ],
)
def test_what_waiting_does_not_mend_ends_the_read(
    monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    with pytest.raises(ReadRefusedError, match="cluster c, topic t: told by the broker"):
        read(monkeypatch, Faulty(failed(code)), 0, 3)


@pytest.mark.parametrize("code", [KafkaError._TRANSPORT, KafkaError.LEADER_NOT_AVAILABLE])
def test_an_error_that_passes_does_not_end_the_read(
    monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    assert read(monkeypatch, Faulty(failed(code), failed(code)), 0, 3) == [0, 1, 2]


@pytest.mark.parametrize(
    "code",
    [
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError._UNKNOWN_PARTITION,
        KafkaError._UNKNOWN_TOPIC,
    ],
)
def test_an_unknown_partition_is_looked_for_once(
    monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    """A consumer that was kept knows nothing of partitions that were added since."""
    consumer = Faulty(failed(code))

    assert read(monkeypatch, consumer, 0, 2) == [0, 1]
    assert consumer.looked_at == ["t"]
    again = Faulty(failed(code), failed(code))
    with pytest.raises(ReadRefusedError, match="topic t: told by the broker"):
        read(monkeypatch, again, 0, 2)
    assert again.looked_at == ["t"]


@pytest.mark.parametrize("code", [KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE])
def test_a_missing_offset_is_a_loss(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    with pytest.raises(
        OffsetsLostError,
        match=r"partition 0: offset 5 does not exist any more \(told by the broker",
    ):
        read(monkeypatch, Faulty(failed(code)), 5, 9)


def test_only_the_end_of_the_range_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a compacted topic the last offsets may have no record."""
    early = failed(KafkaError._PARTITION_EOF, offset=1)
    other = failed(KafkaError._PARTITION_EOF, offset=9, partition=7)
    assert read(monkeypatch, Faulty(early, other), 0, 2) == [0, 1]

    at_end = Faulty(failed(KafkaError._PARTITION_EOF, offset=2))
    assert read(monkeypatch, at_end, 0, 2) == []
    assert at_end.given_up == [("t", 0)]


def test_a_read_that_stalls_says_what_the_broker_said_last(monkeypatch: pytest.MonkeyPatch) -> None:
    faulty = Faulty(*[failed(KafkaError._TRANSPORT)] * 100)

    with pytest.raises(ReadStalledError, match="partition 0, 0 to 2: told by the broker"):
        read(monkeypatch, faulty, 0, 2, stall=-1.0)


@pytest.mark.parametrize(
    ("epochs", "rewritten_at"),
    [
        ((3, 3, 3), None),
        ((2, 3, 3), None),
        ((None, None, None), None),
        ((3, 3, 4), 2),
        ((3, 4, 4), 1),
        ((4, 4, 5), 0),
    ],
)
def test_records_of_a_later_leadership_than_the_planned_one_are_not_read(
    monkeypatch: pytest.MonkeyPatch, epochs: tuple[int | None, ...], rewritten_at: int | None
) -> None:
    """The log was cut and written again after the micro-batch was planned."""

    class Log(Consumer):
        def consume(self, count: int, timeout: float) -> list[Any]:
            return [
                message(offset=offset, **({} if epoch is None else {"leader_epoch": epoch}))
                for offset, epoch in enumerate((*epochs, 9))
            ]

    @contextmanager
    def borrowed(*_: Any) -> Iterator[Consumer]:
        yield Log(portion=9)

    monkeypatch.setattr(range_reader, "borrowed_consumer", borrowed)
    piece = SplitRange(split_id=("c", "t", 0), start=0, end=3, term=3)
    batch = read_ranges([piece], RangeReaderSettings(cluster="c", config={}, stall=60))

    if rewritten_at is None:
        assert [row for one in batch for row in one.column("offset").to_pylist()] == [0, 1, 2]
    else:
        with pytest.raises(LogRewrittenError, match=rf"\(offset {rewritten_at} is of leader epoch"):
            list(batch)


def test_records_beside_errors_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """The end of a partition is told behind its last record."""

    class Mixed(Consumer):
        def consume(self, count: int, timeout: float) -> list[Any]:
            return [
                failed(KafkaError._TRANSPORT, offset=1),
                message(offset=0),
                failed(KafkaError._PARTITION_EOF, offset=2),
                message(offset=1),
            ]

    assert read(monkeypatch, Mixed(portion=1), 0, 2) == [0, 1]
