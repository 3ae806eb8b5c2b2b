"""How the range reader asks its consumer.

What a broker makes of it is in `tests/contract/range_reader`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from confluent_kafka import KafkaError
from hypothesis import given
from hypothesis import strategies as st

from balanced_source.host import SplitRange
from balanced_source_spark.kafka import range_reader
from balanced_source_spark.kafka.range_reader import CHUNK, read_ranges
from balanced_source_spark.kafka.settings import RangeReaderSettings, ReadStalledError
from support.messages import FakeMessage


class Message(FakeMessage):
    def error(self) -> None:
        return None


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
        return [Message(offset=offset) for offset in offsets]


def batches(
    monkeypatch: pytest.MonkeyPatch, consumer: Consumer, start: int, end: int, *, stall: float = 60
) -> Iterator[Any]:
    @contextmanager
    def borrowed(_: Any) -> Iterator[Consumer]:
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
    assert consumer.given_up == [("t", 0)], "nothing is fetched for nobody"
    assert consumer.introduced == [{"t"}]


def test_it_asks_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    consumer = Consumer(portion=10**6)

    assert len(read(monkeypatch, consumer, 0, 2 * CHUNK + 7)) == 2 * CHUNK + 7
    assert consumer.asked == [CHUNK, CHUNK, 7]


class Unreachable(FakeMessage):
    """What librdkafka delivers while no broker answers."""

    def error(self) -> KafkaError:
        return KafkaError(KafkaError._ALL_BROKERS_DOWN, "no broker answers")


def test_errors_of_an_absent_broker_do_not_put_off_the_end_of_patience(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Absent(Consumer):
        def consume(self, count: int, timeout: float) -> list[Any]:
            self.asked.append(count)
            assert len(self.asked) < 5, "it waits for ever"
            return [Unreachable()]

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
    Message,
    topic=st.sampled_from(("t", "u")),
    partition=st.sampled_from((0, 1, 7)),
    offset=st.integers(0, 12),
)


def one_by_one(delivered: list[list[Message]]) -> list[tuple[str, int, int]]:
    """What belongs to the ranges, by looking at each message for itself."""
    begins, ends = {k: r[0] for k, r in RANGES.items()}, {k: r[1] for k, r in RANGES.items()}
    taken = []
    for message in (m for chunk in delivered for m in chunk):
        key, offset = (message.topic(), message.partition()), message.offset()
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
