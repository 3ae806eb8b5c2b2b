"""Limits together with ends and with the alignment: nothing is waited for that never comes."""

from collections.abc import Mapping
from typing import Any

import pytest

from balanced_source.api import STOP, SplitId
from balanced_source.connectors.kafka import LATEST, AtOffset, PerPartition, ReadLimits
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.host.alignment import RecordTime
from balanced_source.host.micro_batch import can_grow, within_stops
from balanced_source_spark.options import AlignmentOptions, Options
from support.planned_query import BrokerAdmin, PlannedQuery
from support.resolving_broker import ResolvingBroker
from support.world import kafka_source

FAST, SLOW = ("c", "fast", 0), ("c", "slow", 0)
STEP = {FAST: 60_000, SLOW: 1_000}
"""Milliseconds between two records."""

NEVER = 1e9
"""Seconds: longer than any test."""


@pytest.fixture(autouse=True)
def _times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Brokers that know when each record happened."""

    def records_from(
        self: BrokerAdmin, _cluster: Any, millis: Mapping[SplitId, int]
    ) -> Mapping[SplitId, RecordTime | None]:
        found = {s: max(0, -(-moment // STEP[s])) for s, moment in millis.items()}
        return {
            s: RecordTime(offset=n, time=n * STEP[s]) if n < self.broker.ends[s] else None
            for s, n in found.items()
        }

    monkeypatch.setattr(BrokerAdmin, "records_from", records_from, raising=False)


def query(*, is_aligned: bool = False, **source: Any) -> PlannedQuery:
    broker = ResolvingBroker()
    for topic in ("fast", "slow"):
        broker.create("c", topic, [0], end=100)
    alignment = AlignmentOptions(max_drift=10_000) if is_aligned else None
    options = Options(start_timeout=5.0, alignment=alignment)
    interval = None if source.get("stopping_offsets") else 0.05
    made = kafka_source("c", discovery_interval=interval, **source)
    return PlannedQuery(source=made, broker=broker, options=options)


def test_the_last_records_before_the_ends_are_not_waited_for_more() -> None:
    """No further record can come, so too few are all that there are."""
    limits = ReadLimits(max_records=80, min_records=80, max_delay=NEVER)
    made = query(limits=limits, stopping_offsets=LATEST)

    made.trigger_until(lambda: made.records.total() == 200, "all records")
    made.trigger_until(lambda: made.last.closings > 0, "the end")
    made.close()


def test_before_the_ends_are_there_too_few_records_are_waited_for() -> None:
    limits = ReadLimits(min_records=300, max_delay=NEVER)
    ends = PerPartition(listed={("fast", 0): AtOffset(400)}, default=LATEST)
    made = query(limits=limits, stopping_offsets=ends)
    made.trigger()
    assert not made.trigger()
    assert not made.records

    made.broker.ends[FAST] = 300
    made.trigger_until(lambda: made.records.total() == 400, "enough records")
    made.close()


def test_records_that_wait_for_slower_splits_count_as_available() -> None:
    """The alignment lets 10 seconds of event time be read at once, of the slow split 11 records."""
    limits = ReadLimits(min_records=100, max_delay=NEVER)
    made = query(is_aligned=True, limits=limits)

    made.trigger_until(lambda: (made.last.positions.get(SLOW) or 0) > 90, "the slow split")
    made.close()

    assert set(made.records.values()) == {1}
    assert made.last.positions[FAST] == 2


def test_an_aligned_query_with_too_few_records_waits_for_more() -> None:
    limits = ReadLimits(min_records=300, max_delay=NEVER)
    made = query(is_aligned=True, limits=limits)
    made.trigger()
    assert not made.trigger()
    assert not made.records

    made.broker.ends[FAST] = 300
    made.trigger_until(lambda: (made.last.positions.get(SLOW) or 0) > 90, "the slow split")
    made.close()


def test_an_aligned_query_that_ends_by_itself_does_not_wait_beyond_the_ends() -> None:
    """What lies behind the end of a split is never read, so it is no target."""
    ends = PerPartition(
        listed={("fast", 0): AtOffset(2), ("slow", 0): AtOffset(60)}, default=LATEST
    )
    made = query(is_aligned=True, stopping_offsets=ends)

    made.available_now()
    made.close()

    assert made.planner._targets == made.last.positions, "else it waits for its time-out"

    assert made.last.positions == {FAST: 2, SLOW: 60}


def test_targets_and_growth_end_at_stops() -> None:
    base = StreamOffset(positions={FAST: 0, SLOW: 0}, attributes={FAST: {STOP: 5}})

    assert within_stops({FAST: 9, SLOW: 9}, base) == {FAST: 5, SLOW: 9}
    assert can_grow(base, {FAST: 5, SLOW: 9})
    assert not can_grow(base, {FAST: 5})
    assert can_grow(base, {FAST: 4})
