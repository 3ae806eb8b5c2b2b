"""Reports that are seen long after the micro-batch has ended whose end they tell."""

import math
from dataclasses import replace

import pytest

from balanced_source_operator.controller.autoscaling import Sample
from balanced_source_operator.controller.autoscaling.host_samples import HostSamples
from support.batch_query import Query, policy
from support.builders import make_report

SPLIT = ("c", "t", 0)


def sparse(trigger: float) -> Query:
    """A query with so many splits that the operator takes a sample every 10 seconds."""
    return Query(
        load=3000,
        capacity=1000,
        readers=6,
        cost=1.0,
        noise=0.1,
        policy=policy(trigger, most=16),
        tick=0.5,
        spacing=10.0,
        is_timed=True,
    )


@pytest.mark.parametrize("trigger", [10.0, 12.0, 13.0, 33.0])
def test_a_reader_does_not_seem_faster_where_samples_are_few(trigger: float) -> None:
    query, fastest = sparse(trigger), 0.0
    for second in range(0, 3 * 3600, 10):
        query.load = 4500 - 3500 * math.cos(2 * math.pi * second / 3600)
        query.run(10)
        known = query.memory.capacity
        fastest = max(fastest, known.rate if known is not None else 0)

    assert 800 <= fastest <= 1050


@pytest.mark.parametrize("trigger", [10.0, 13.0])
def test_a_rising_load_is_carried_where_samples_are_few(trigger: float) -> None:
    query, unread = sparse(trigger), 0.0
    for second in range(0, 3 * 3600, 10):
        query.load = 4500 - 3500 * math.cos(2 * math.pi * second / 3600)
        query.run(10)
        unread = max(unread, query.arrived - query.read)

    assert unread < 3 * trigger * 8000


def test_rates_are_those_between_the_ends_of_micro_batches() -> None:
    """The driver looks eight seconds after the second one has ended: 800 records have arrived."""
    first = Sample(at=0.0, readers=1, unread=2000, positions={SPLIT: 0}, owners={SPLIT: 0})
    series = HostSamples()
    for at, ended, position, unread in (
        (0, 0, 0, 2000),
        (10, 10, 1000, 2000),
        (28, 20, 2000, 2800),
    ):
        sample = replace(
            first, at=float(at), unread=unread, positions={SPLIT: position}, positions_at=ended
        )
        series = series.observed(sample, now=at)

    reading = series.reading
    assert reading is not None
    assert (reading.seconds, reading.rate, reading.arrival) == (10.0, 100.0, 100.0)
    assert series.samples[-1].at == 28.0


@pytest.mark.parametrize("value", [None, "1", True, float("nan"), -1, 0.0, 5.0, 28.0, 1e9])
def test_a_time_that_cannot_be_that_of_the_end_is_unknown(value: object) -> None:
    metrics = {} if value is None else {"positionsAt": value, "unread": 7}
    before = Sample(at=5.0, readers=1, unread=7, positions={SPLIT: 0}, owners={SPLIT: 0})
    after = Sample.of(
        make_report(parallelism=1, lag=7, heartbeat=28.0, positions={SPLIT: 9}, metrics=metrics)
    )

    assert after is not None
    assert after.at_end(before) == after
