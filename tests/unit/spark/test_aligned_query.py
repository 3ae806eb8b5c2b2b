"""A whole query whose splits wait for each other, on the real planner."""

from collections.abc import Mapping
from typing import Any

import pytest

from balanced_source.api import SplitId
from balanced_source.errors import DiscoveryError, TransientDiscoveryError
from balanced_source.host.alignment import RecordTime
from balanced_source_spark.options import AlignmentOptions, Options
from support.planned_query import BrokerAdmin, PlannedQuery
from support.world import Broker, kafka_source

START = 1_700_000_000_000
FAST, SLOW = ("c", "fast", 0), ("c", "slow", 0)
STEP = {FAST: 60_000, SLOW: 1_000}
"""Milliseconds between two records."""


@pytest.fixture(autouse=True)
def _times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Brokers that know when each record happened."""

    def records_from(
        self: BrokerAdmin, _cluster: Any, millis: Mapping[SplitId, int]
    ) -> Mapping[SplitId, RecordTime | None]:
        found: dict[SplitId, RecordTime | None] = {}
        for split_id, moment in millis.items():
            offset = max(0, -(-(moment - START) // STEP[split_id]))
            is_there = offset < self.broker.ends[split_id]
            time = START + offset * STEP[split_id]
            found[split_id] = RecordTime(offset=offset, time=time) if is_there else None
        return found

    monkeypatch.setattr(BrokerAdmin, "records_from", records_from, raising=False)


def query(*, idle_timeout: float = 30.0, start_timeout: float = 5.0) -> PlannedQuery:
    broker = Broker()
    for topic in ("fast", "slow"):
        broker.create("c", topic, [0], end=100)
    alignment = AlignmentOptions(max_drift=10_000, idle_timeout=idle_timeout)
    options = Options(start_timeout=start_timeout, alignment=alignment)
    return PlannedQuery(source=kafka_source("c"), broker=broker, options=options)


def read(made: PlannedQuery) -> tuple[int, int]:
    """How many records of each split were delivered."""
    ids = [split_id for split_id, _, _ in made.records.elements()]
    return ids.count(FAST), ids.count(SLOW)


def test_a_split_that_is_ahead_waits_for_the_slowest_one() -> None:
    """100 records of the one are 100 seconds, of the other 100 minutes."""
    made = query()
    made.trigger_until(lambda: read(made)[1] == 100, "the slow split to be read")

    fast, slow = read(made)

    assert (fast, slow) == (2, 100)
    assert set(made.records.values()) == {1}
    made.close()


def test_a_query_that_ends_by_itself_waits_for_no_split_that_is_read() -> None:
    made = query()

    made.available_now()

    assert read(made) == (100, 100)
    assert set(made.records.values()) == {1}
    made.close()


def test_a_query_that_ends_by_itself_waits_until_times_of_records_are_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Spark ends such a query with the first trigger that does not move."""
    answer = BrokerAdmin.records_from
    silent = iter(range(3))

    def records_from(*question: Any) -> Any:
        if next(silent, None) is not None:
            raise TransientDiscoveryError("no answer")
        return answer(*question)

    monkeypatch.setattr(BrokerAdmin, "records_from", records_from)
    made = query()

    made.available_now()

    assert read(made) == (100, 100)
    made.close()


def test_a_query_that_ends_by_itself_fails_if_times_of_records_stay_unknown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """To end without a word would look as if everything had been read."""

    def records_from(*_: Any) -> Any:
        raise TransientDiscoveryError("no answer")

    monkeypatch.setattr(BrokerAdmin, "records_from", records_from)
    made = query(start_timeout=0.3)

    with pytest.raises(DiscoveryError, match="times of records are unknown after 0 s for 2 splits"):
        made.available_now()
    made.close()


def test_records_that_wait_are_told_apart_from_those_that_may_be_read() -> None:
    made = query()
    made.trigger_until(lambda: read(made)[1] == 100, "the slow split to be read")

    metrics = made.planner._runtime._progress.metrics()

    waiting = 98
    assert metrics["unread"] - metrics["admitted"] == waiting
    assert metrics["admitted"] <= 2
    made.close()
