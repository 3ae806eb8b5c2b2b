"""A load that comes in bursts, while micro-batches take several of them or most of one."""

import pytest

from balanced_source_operator.controller.autoscaling import AutoscalerMemory
from balanced_source_operator.controller.autoscaling.host_samples import ARRIVAL, HostSamples
from balanced_source_operator.controller.autoscaling.memory import Capacity
from balanced_source_operator.controller.autoscaling.samples import Sample
from support.batch_query import Query, policy

SPLIT = ("c", "t", 0)


def known(trigger: float, load: float) -> Query:
    """A query of which it is known what its readers can do."""
    return Query(
        load=load,
        capacity=1000,
        readers=3,
        cost=1.0,
        policy=policy(trigger, most=24),
        tick=0.5,
        spacing=2.0,
        is_timed=True,
        memory=AutoscalerMemory(capacity=Capacity.stored(1000.0, at=0.0)),
    )


def bursting(trigger: float, seconds: int) -> Query:
    """12,000 records/s for 10 of each 73 seconds: three readers carry the 1,640 of the mean."""
    query = known(trigger, 0)
    while query.now < seconds:
        query.load = 12_000 if query.now % 73 >= 63 else 0
        query.run(1)
    return query


@pytest.mark.parametrize(("trigger", "most"), [(30.0, 5), (60.0, 3), (600.0, 3)])
def test_bursts_get_the_readers_that_a_micro_batch_needs_and_not_those_of_their_peak(
    trigger: float, most: int
) -> None:
    query = bursting(trigger, 3 * 3600)

    found = [v.readers for v in query.verdicts]
    assert max(found) <= most
    assert query.readers >= 2
    assert query.arrived - query.read <= 2 * max(trigger, 73) * 1640


@pytest.mark.parametrize("trigger", [30.0, 60.0, 600.0])
def test_a_step_of_the_load_is_answered_before_the_next_micro_batch(trigger: float) -> None:
    query = known(trigger, 2000).run(4 * int(trigger))
    assert query.readers == 3
    query.load = 6000

    query.run(int(trigger) + 10)
    assert query.readers >= 5
    query.run(6 * int(trigger))
    assert query.readers >= 7
    assert query.arrived - query.read <= 3 * trigger * query.load


def reports(*ends: tuple[float, int]) -> HostSamples:
    series = HostSamples()
    for at, end in ends:
        sample = Sample(at=at, readers=1, unread=end, positions={SPLIT: 0}, owners={SPLIT: 0})
        series = series.observed(sample, now=at, window=60.0)
    return series


def test_what_arrives_is_measured_over_the_shortest_time_that_is_long_enough() -> None:
    series = reports(*((float(at), 100 * at + (1000 if at > 40 else 0)) for at in range(0, 102, 2)))

    assert series.arrival(60.0) == pytest.approx(100 + 1000 / 60)
    assert series.arrival(20.0) == pytest.approx(100)
    assert series.arrival(1000.0) == pytest.approx(100 + 1000 / 60, rel=0.05), "as long as is known"
    assert len(series.arrivals) <= 26


def test_what_arrives_is_unknown_before_two_reports_that_are_far_enough_apart() -> None:
    assert reports((0.0, 100)).arrival(60.0) is None
    assert reports((0.0, 100), (ARRIVAL - 1, 200)).arrival(60.0) is None
    assert reports((0.0, 100), (ARRIVAL, 200)).arrival(60.0) == 100 / ARRIVAL


def test_records_that_retention_takes_away_have_not_arrived_backwards() -> None:
    assert reports((0.0, 1000), (30.0, 400)).arrival(60.0) == 0
