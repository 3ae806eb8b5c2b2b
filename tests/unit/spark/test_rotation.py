"""A broker refuses the old password before the new one has arrived."""

from collections.abc import Iterator
from typing import Any

import pytest

from balanced_source.errors import TransientDiscoveryError
from balanced_source_spark.kafka.rotation import read_with_newest
from balanced_source_spark.kafka.settings import RangeReaderSettings, ReadRefusedError


class Broker:
    """Knows the third password; delivers two batches, or refuses again after one."""

    def __init__(self, *, fails_late: bool = False) -> None:
        self.tried: list[int] = []
        self._fails_late = fails_late

    def settings(self) -> RangeReaderSettings:
        self.tried.append(len(self.tried) + 1)
        return RangeReaderSettings(cluster="c", config={"sasl.password": self.tried[-1]})

    def read(self, ranges: Any, settings: RangeReaderSettings) -> Iterator[Any]:
        if settings.config["sasl.password"] < 3:
            raise ReadRefusedError("no")
        yield "first"
        if self._fails_late:
            raise ReadRefusedError("no more")
        yield "second"


def test_the_newest_secret_is_tried_until_it_is_right() -> None:
    broker = Broker()

    assert list(read_with_newest((), broker.settings, broker.read, patience=60, interval=0)) == [
        "first",
        "second",
    ]
    assert broker.tried == [1, 2, 3]


def test_without_secrets_a_refusal_counts_at_once() -> None:
    broker = Broker()

    with pytest.raises(ReadRefusedError):
        list(read_with_newest((), broker.settings, broker.read, patience=0, interval=0))
    assert broker.tried == [1]


def test_delivered_records_are_not_delivered_again() -> None:
    """The task fails then, and Spark discards what it gave."""
    broker = Broker(fails_late=True)
    batches = read_with_newest((), broker.settings, broker.read, patience=60, interval=0)

    assert next(batches) == "first"
    with pytest.raises(ReadRefusedError, match="no more"):
        next(batches)
    assert broker.tried == [1, 2, 3]


def test_nothing_to_read_is_nothing() -> None:
    assert list(read_with_newest((), Broker().settings, lambda *_: iter(()), patience=60)) == []


def test_a_leader_that_does_not_answer_is_waited_for() -> None:
    """With `onDataLoss: Continue` a partition with an unknown begin would pass for deleted."""
    tried: list[int] = []

    def read(*_: Any) -> Iterator[Any]:
        tried.append(1)
        if len(tried) < 3:
            raise TransientDiscoveryError("no leader")
        yield "first"

    assert list(read_with_newest((), Broker().settings, read, patience=0, interval=0)) == ["first"]
    tried.clear()
    with pytest.raises(TransientDiscoveryError):
        list(read_with_newest((), Broker().settings, read, patience=60, interval=0, stall=0))
