"""How large a record is, and the mean size that is known of each topic."""

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from balanced_source.api import SplitId
from balanced_source_spark.kafka import record_sizes
from balanced_source_spark.kafka.record_sizes import (
    FRESH,
    PATIENCE,
    SAMPLE,
    RecordSizes,
    sampled,
    size_of,
)
from testbed.waiting import wait_until

ORDERS, MORE_ORDERS, GONE = ("c", "orders", 0), ("c", "orders", 1), ("c", "gone", 0)

HELD = (ORDERS, MORE_ORDERS, GONE)


class Samples:
    """Records of 100 bytes; the topic "gone" has none that can be read."""

    def __init__(self) -> None:
        self.taken: list[tuple[SplitId, int]] = []
        self.size: float | None = 100.0

    def __call__(self, split_id: SplitId, offset: int) -> float | None:
        self.taken.append((split_id, offset))
        if split_id == GONE:
            raise LookupError("no such topic")
        return self.size


class Clock:
    """Stands in for the module `time`."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(record_sizes, "time", made)
    return made


@pytest.mark.usefixtures("clock")
def test_one_sample_where_reading_stands_counts_for_all_splits_of_a_topic() -> None:
    samples = Samples()

    found = RecordSizes(samples)({GONE: 1, ORDERS: 7, MORE_ORDERS: 9}, HELD)

    assert found == {ORDERS: 100.0, MORE_ORDERS: 100.0}
    assert samples.taken == [(GONE, 1), (ORDERS, 7)]


def test_a_sample_is_taken_again_when_it_is_old(clock: Clock) -> None:
    samples = Samples()
    sizes = RecordSizes(samples)
    sizes({ORDERS: 0}, HELD)

    clock.now = FRESH - 1
    sizes({ORDERS: 5}, HELD)
    assert samples.taken == [(ORDERS, 0)]

    clock.now, samples.size = FRESH, None
    assert sizes({ORDERS: 6}, HELD) == {ORDERS: 100.0}, "without newer records the size stays"
    wait_until(lambda: len(samples.taken) == 2, 20, "another sample", interval=0.005)
    assert samples.taken[1] == (ORDERS, 6)


def test_a_topic_that_does_not_answer_in_time_has_no_size_yet(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(record_sizes, "PATIENCE", 0.0)
    answers, has_answered = threading.Event(), threading.Event()

    def sample(_split_id: SplitId, _offset: int) -> float:
        assert answers.wait(20)
        has_answered.set()
        return 5.0

    sizes = RecordSizes(sample)

    assert sizes({ORDERS: 0}, HELD) == {}
    assert not has_answered.is_set()
    answers.set()
    monkeypatch.setattr(record_sizes, "PATIENCE", 20.0)
    assert sizes({ORDERS: 0}, HELD) == {ORDERS: 5.0}


@pytest.mark.parametrize(
    ("key", "value", "headers", "size"),
    [
        (b"id", b"payload", None, 9),
        (None, None, [], 0),
        (b"id", None, [("trace", b"abc"), ("empty", None)], 2 + 8 + 5),
    ],
)
def test_the_size_of_a_record_counts_key_value_and_headers(
    key: bytes | None, value: bytes | None, headers: Any, size: int
) -> None:
    message: Any = SimpleNamespace(key=lambda: key, value=lambda: value, headers=lambda: headers)

    assert size_of(message) == size


class Consumer:
    """Delivers some messages, one of them an error."""

    made: list["Consumer"] = []

    def __init__(self, config: dict[str, Any]) -> None:
        self.config = config
        self.assigned: list[Any] = []
        self.asked: tuple[Any, ...] = ()
        self.is_closed = False
        self.made.append(self)

    def assign(self, partitions: list[Any]) -> None:
        self.assigned = [(p.topic, p.partition, p.offset) for p in partitions]

    def consume(self, count: int, timeout: float) -> list[Any]:
        self.asked = (count, timeout)
        if self.config.get("fails"):
            raise LookupError("no answer")
        return [message(b"id", b"value") for _ in range(self.config["messages"])] + [
            message(b"", b"x" * 99, error="the end")
        ]

    def close(self) -> None:
        self.is_closed = True


def message(key: bytes, value: bytes, *, error: str | None = None) -> Any:
    return SimpleNamespace(
        key=lambda: key, value=lambda: value, headers=lambda: None, error=lambda: error
    )


@pytest.mark.parametrize(("messages", "mean"), [(0, None), (1, 7.0), (3, 7.0)])
def test_a_sample_is_the_mean_of_the_records_from_an_offset_on(
    monkeypatch: pytest.MonkeyPatch, messages: int, mean: float | None
) -> None:
    monkeypatch.setattr(record_sizes, "Consumer", Consumer)

    assert sampled({"messages": messages}, MORE_ORDERS, 7) == mean

    consumer = Consumer.made[-1]
    assert consumer.assigned == [("orders", 1, 7)]
    assert consumer.asked == (SAMPLE, PATIENCE / 2)
    assert consumer.config["queued.min.messages"] == SAMPLE
    assert consumer.is_closed


def test_the_consumer_of_a_sample_is_closed_whatever_happens(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(record_sizes, "Consumer", Consumer)

    with pytest.raises(LookupError):
        sampled({"fails": True}, ORDERS, 7)
    assert Consumer.made[-1].is_closed


def test_headers_that_the_client_cannot_read_do_not_count() -> None:
    """They would end the query of a source that is limited in bytes."""

    def headers() -> Any:
        raise SystemError("returned a result with an exception set")

    read: Any = SimpleNamespace(key=lambda: b"k", value=lambda: b"value", headers=headers)

    assert size_of(read) == 6


def test_topics_that_are_not_held_any_more_are_forgotten(clock: Clock) -> None:
    """Topics may be named by day. One that has nothing to read now is remembered."""
    samples = Samples()
    sizes = RecordSizes(samples)
    sizes({ORDERS: 0}, [ORDERS])
    for number in range(50):
        day: SplitId = ("c", f"day-{number}", 0)
        clock.now += FRESH
        assert sizes({day: 0}, [ORDERS, day]) == {day: 100.0}

    assert sizes._known.keys() == sizes._asked.keys() == {("c", "orders"), ("c", "day-49")}
    assert sizes({ORDERS: 5}, [ORDERS]) == {ORDERS: 100.0}
