"""How the range reader asks its consumer; what a broker makes of it is in `tests/contract/range_reader`."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from balanced_source.host import SplitRange
from balanced_source_spark.kafka import range_reader
from balanced_source_spark.kafka.range_reader import CHUNK, read_ranges
from balanced_source_spark.kafka.settings import RangeReaderSettings
from support.messages import FakeMessage


class Message(FakeMessage):
    def error(self) -> None:
        return None


class Consumer:
    """Delivers `portion` messages per call, however many it is asked for; notes how many that was."""

    def __init__(self, portion: int) -> None:
        self.portion = portion
        self.asked: list[int] = []
        self.paused: list[tuple[str, int]] = []
        self._next = 0

    def assign(self, partitions: list[Any]) -> None:
        self._next = partitions[0].offset

    def resume(self, partitions: list[Any]) -> None:
        self.paused.clear()

    def pause(self, partitions: list[Any]) -> None:
        self.paused += [(p.topic, p.partition) for p in partitions]

    def consume(self, count: int, timeout: float) -> list[Message]:
        self.asked.append(count)
        offsets = range(self._next, self._next + min(count, self.portion))
        self._next = offsets.stop
        return [Message(offset=offset) for offset in offsets]


def read(monkeypatch: pytest.MonkeyPatch, consumer: Consumer, start: int, end: int) -> list[int]:
    @contextmanager
    def borrowed(_: Any) -> Iterator[Consumer]:
        yield consumer

    monkeypatch.setattr(range_reader, "borrowed_consumer", borrowed)
    piece = SplitRange(split_id=("c", "t", 0), start=start, end=end)
    settings = RangeReaderSettings(cluster="c", config={})
    return [offset for batch in read_ranges([piece], settings) for offset in batch.column("offset").to_pylist()]


def test_it_never_asks_for_more_than_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """`consume` waits out its timeout when fewer messages remain than were asked for."""
    consumer = Consumer(portion=3)

    assert read(monkeypatch, consumer, 5, 15) == list(range(5, 15))
    assert consumer.asked == [10, 7, 4, 1]
    assert consumer.paused == [("t", 0)], "nothing is fetched for nobody"


def test_it_asks_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    consumer = Consumer(portion=10**6)

    assert len(read(monkeypatch, consumer, 0, 2 * CHUNK + 7)) == 2 * CHUNK + 7
    assert consumer.asked == [CHUNK, CHUNK, 7]
