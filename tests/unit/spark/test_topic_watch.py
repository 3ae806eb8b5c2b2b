"""Reads to which nothing comes are looked at, and ended when their topic is gone."""

from types import SimpleNamespace

import pytest

from balanced_source.errors import TransientDiscoveryError
from balanced_source_spark.kafka import topic_watch
from balanced_source_spark.kafka.topic_watch import Interrupt, TopicWatch, WatchedRead


class Topic:
    """Counts how often it is looked for."""

    def __init__(self) -> None:
        self.is_gone = False
        self.is_silent = False
        self.looks = 0

    def __call__(self) -> bool:
        self.looks += 1
        if self.is_silent:
            raise TransientDiscoveryError("no answer", scope="c")
        return self.is_gone


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    times = [100.0]
    monkeypatch.setattr(topic_watch, "time", SimpleNamespace(monotonic=lambda: times[0]))
    return times


def test_a_topic_is_checked_when_nothing_has_come_for_a_while(now: list[float]) -> None:
    topic, interrupt = Topic(), Interrupt()
    watch, read = TopicWatch(look_after=5.0), WatchedRead(topic, interrupt, now[0])

    now[0] = 104.9
    watch._look(read)
    assert topic.looks == 0
    now[0] = 105.0
    watch._look(read)
    assert (topic.looks, interrupt.is_set) == (1, False)

    read.moved_at = 105.0
    watch._look(read)
    assert topic.looks == 1, "a record batch has come"


def test_a_read_whose_topic_is_gone_ends_once(now: list[float]) -> None:
    topic, interrupt, stopped = Topic(), Interrupt(), list[str]()
    watch, read = TopicWatch(look_after=5.0), WatchedRead(topic, interrupt, now[0])
    now[0], topic.is_silent = 200.0, True

    with interrupt.calls(lambda: stopped.append("stop")):
        watch._look(read)
        assert not interrupt.is_set, "unknown: the read ends by itself if it stalls"
        topic.is_silent, topic.is_gone = False, True
        watch._look(read)
        watch._look(read)

    assert interrupt.is_set
    assert stopped == ["stop"]
    assert topic.looks == 2
