"""Micro-batches that last longer than anything that the autoscaler measures by."""

import re
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from balanced_source.reasons import Reason
from balanced_source_operator.controller.autoscaling import (
    AutoscalerMemory,
    BatchTimes,
    Sample,
    decide,
    observe,
)
from support.batch_query import SPLITS, Query, policy
from support.builders import make_report


def fixed(cost: float, **changes: Any) -> Query:
    """Readers that are idle for half of the time, and commits that last so many seconds."""
    values: dict[str, Any] = {"load": 3000, "capacity": 1000, "readers": 6}
    return Query(cost=cost, policy=policy(), **{**values, **changes})


@pytest.mark.parametrize("trigger", [20.0, 60.0, 120.0, 600.0])
def test_a_reader_does_not_seem_faster_the_longer_its_trigger_interval_is(trigger: float) -> None:
    """Positions move once per interval: by its whole load."""
    query = Query(load=8000, capacity=1200, policy=policy(trigger), readers=8).run(7200)

    found = query.memory.capacity
    assert found is not None
    assert found.rate <= 1.05 * 1200


@pytest.mark.parametrize("trigger", [20.0, 60.0, 120.0, 600.0])
def test_a_long_trigger_interval_does_not_take_the_readers_away_that_a_load_needs(
    trigger: float,
) -> None:
    query = Query(load=8000, capacity=1200, policy=policy(trigger), readers=8).run(4 * 3600)

    assert min(v.readers for v in query.verdicts) >= 4, "what is tried out shows in time"
    assert query.readers >= 8


@pytest.mark.parametrize("delay", [300.0, 0.0])
def test_a_source_at_its_limit_warns_once_however_its_micro_batches_swing(delay: float) -> None:
    """At the end of each micro-batch it is less far behind than maxLag."""
    asked = replace(policy(most=3), scale_down_delay=delay)
    query = Query(load=3000, capacity=1000, cost=40, policy=asked, readers=3).run(7200)

    changes = [v.is_able for v in query.verdicts]
    assert sum(before != after for before, after in pairwise(changes)) == 1
    assert query.verdicts[-1].reason is Reason.AT_MAXIMUM


def test_a_limit_is_forgotten_when_the_policy_changes() -> None:
    query = Query(load=3000, capacity=1000, cost=40, policy=policy(most=3), readers=3).run(3600)
    assert not query.verdicts[-1].is_able

    query.policy = policy(most=24)
    query.run(600)

    assert query.readers > 3
    assert "maxReaders 3 " not in query.verdicts[-1].message


def test_nothing_is_tried_out_before_one_micro_batch_was_seen_from_end_to_end() -> None:
    query = Query(load=800, capacity=1000, policy=policy(600.0), readers=8).run(1200)

    assert {v.readers for v in query.verdicts} == {8}
    assert "what one reader can process is unknown" in query.verdicts[-1].message


@pytest.mark.parametrize(("trigger", "cost"), [(1.0, 1.5), (5.0, 8.0), (10.0, 15.0)])
def test_a_few_records_in_late_micro_batches_teach_nothing_about_readers(
    trigger: float, cost: float
) -> None:
    """Micro-batches last longer than the trigger interval, whatever they read."""
    query = Query(load=0.3, capacity=1000, readers=2, cost=cost, policy=policy(trigger)).run(3600)

    assert {v.readers for v in query.verdicts} <= {1, 2}


def test_a_backlog_to_which_nothing_is_added_is_told_in_records() -> None:
    memory = AutoscalerMemory()
    for number in range(3):
        report = make_report(
            parallelism=2,
            lag=5000 - 100 * number,
            heartbeat=10.0 * number,
            positions={SPLITS[0]: 100 * number},
        )
        sample = Sample.of(report)
        assert sample is not None
        memory = observe(policy(), memory, sample, now=10.0 * number)
        memory = decide(policy(), memory, wanted=2, now=10.0 * number)

    assert memory.verdict is not None
    assert memory.verdict.message.startswith("0 records/s arrive, 4800 records unread, and")


@pytest.mark.parametrize("cost", [0.0, 300.0])
def test_a_load_that_falls_within_a_long_trigger_interval_adds_no_readers(cost: float) -> None:
    """What is unread then has come faster than what arrives now."""
    query = Query(load=8000, capacity=1200, policy=policy(600.0), readers=12, cost=cost).run(6300)
    before = query.readers
    query.load = 400

    query.run(1800)

    assert max(v.readers for v in query.verdicts) == 12
    assert query.readers <= before
    assert not any("behind" in v.message for v in query.verdicts[-100:])


@pytest.mark.parametrize("load", [1000, 3000, 4500])
@pytest.mark.parametrize(("cost", "noise"), [(3.0, 0.0), (3.0, 0.3), (6.0, 0.3), (10.0, 0.0)])
def test_the_fixed_cost_of_micro_batches_is_no_limit(
    cost: float, noise: float, load: float
) -> None:
    """As much is unread at the end of each as at the end of the one before."""
    query = fixed(cost, noise=noise, load=load).run(4 * 3600)

    found = [v.readers for v in query.verdicts]
    assert sum(before != after for before, after in pairwise(found)) <= 4
    assert all(v.is_able for v in query.verdicts)


def test_a_usual_backlog_is_said_to_be_one() -> None:
    query = fixed(10.0).run(3600)

    assert query.verdicts[-1].reason is Reason.WITHIN_TARGET
    found = re.fullmatch(
        r"6 readers keep up with 3000 records/s, \d+ s behind as always: micro-batches are long\."
        r" See how long the sink's commit takes",
        query.verdicts[-1].message,
    )
    assert found, query.verdicts[-1].message


@pytest.mark.parametrize("cost", [60.0, 400.0])
def test_readers_that_a_long_commit_seemed_to_need_are_taken_away_again(cost: float) -> None:
    """What is further behind than maxLag is tried with more readers, once."""
    query = fixed(cost, load=1000).run(4 * 3600)

    found = [v.readers for v in query.verdicts]
    assert sum(before != after for before, after in pairwise(found)) == 2
    assert (max(found), query.readers) == (12, 6)
    assert query.verdicts[-1].reason is Reason.DOWNSTREAM_LIMIT


def test_the_fewest_readers_stay_also_where_more_have_changed_nothing() -> None:
    """`minReaders` is raised above the number that was found to suffice."""
    query = Query(load=600, capacity=1000, cost=6.0, policy=policy(1.0), readers=2, noise=0.1)
    query.run(1800)
    assert query.memory.ceiling is not None
    assert query.memory.ceiling.keeps_up
    assert query.readers == 2
    before = len(query.verdicts)

    query.policy = replace(query.policy, min_readers=4)
    query.run(3 * 3600)

    assert {v.readers for v in query.verdicts[before:]} == {4}
    assert query.verdicts[before].reason is Reason.WITHIN_BOUNDS


def test_a_load_that_readers_cannot_carry_ends_what_a_long_commit_has_taught() -> None:
    query = fixed(60.0, load=1000).run(3600)
    assert query.memory.ceiling is not None
    query.load = 7000
    query.run(3600)

    assert query.readers == 12


def test_readers_are_added_where_micro_batches_become_longer_and_longer() -> None:
    query = fixed(5.0, load=3000).run(1800)
    query.load = 7000
    query.run(1800)

    assert query.readers >= 9
    assert query.arrived - query.read < query.policy.max_lag * query.load


@pytest.mark.parametrize("trigger", [0.0, 1.0, 5.0])
@pytest.mark.parametrize("growth", [1.5, 3.0, 5.0])
def test_a_step_of_the_load_is_answered_within_a_minute(trigger: float, growth: float) -> None:
    query = Query(load=250, capacity=500, cost=0.3, policy=policy(trigger), readers=1).run(900)
    assert query.readers == 1
    query.load *= growth

    query.run(80)

    assert query.readers > (growth > 2)
    query.run(600)
    assert query.arrived - query.read < query.policy.max_lag * query.load


@pytest.mark.parametrize("capacity", [450, 500, 560, 650])
def test_a_step_of_the_load_is_answered_before_micro_batches_grow(capacity: int) -> None:
    """Each takes as long as the one before has let pile up, and cannot be made shorter."""
    asked = replace(policy(1.0, most=8), scale_down_delay=30)
    query = Query(
        load=500, capacity=capacity, cost=0.2, policy=asked, readers=1, tick=0.1, spacing=2.0
    ).run(40)
    query.load, worst = 2500, 0.0
    for _ in range(120):
        query.run(1)
        worst = max(worst, query.arrived - query.read)

    assert worst < 40 * query.load
    assert query.readers >= 5
    assert query.arrived - query.read < 3 * query.load


def test_a_commit_that_is_longer_than_the_trigger_interval_adds_no_readers_for_itself() -> None:
    """No micro-batch waits for the trigger, however many readers there are."""
    query = Query(
        load=450, capacity=500, cost=1.0, policy=policy(1.0), readers=1, tick=0.1, spacing=2.0
    ).run(2400)

    found = [v.readers for v in query.verdicts]
    assert (max(found), query.readers) == (2, 2)
    assert all(v.is_able for v in query.verdicts)


@pytest.mark.parametrize(
    "metrics",
    [
        {},
        {"microBatches": 3},
        {"microBatches": True, "microBatchSeconds": 1.0},
        {"microBatches": -1, "microBatchSeconds": 1.0},
        {"microBatches": 3, "microBatchSeconds": "1"},
        {"microBatches": 3, "microBatchSeconds": True},
        {"microBatches": 3, "microBatchSeconds": float("nan")},
        {"microBatches": 3, "microBatchSeconds": -1},
    ],
)
def test_malformed_figures_of_micro_batches_are_unknown(metrics: dict[str, Any]) -> None:
    report = make_report(parallelism=2, lag=1, positions={SPLITS[0]: 1}, metrics=metrics)
    sample = Sample.of(report)

    assert sample is not None
    assert sample.pace is None


def test_a_driver_tells_its_micro_batches() -> None:
    metrics = {"microBatches": 3, "microBatchSeconds": 4, "lateMicroBatchSeconds": 2.5}
    report = make_report(parallelism=2, lag=1, positions={SPLITS[0]: 1}, metrics=metrics)
    sample = Sample.of(report)

    assert sample is not None
    assert sample.pace == BatchTimes(3, 4.0, 2.5)


def ticking(trigger: float, cost: float, **changes: Any) -> Query:
    """A query with an interval, whose driver reports as a real one does."""
    values = {"load": 800, "capacity": 1000, "readers": 2, **changes}
    return Query(cost=cost, policy=policy(trigger), tick=0.25, spacing=2.0, **values)


@pytest.mark.parametrize(("trigger", "cost"), [(0.5, 1.0), (1.0, 1.5), (5.0, 6.0)])
def test_a_commit_that_is_longer_than_the_trigger_interval_holds_no_readers(
    trigger: float, cost: float
) -> None:
    """There are as many as may be, so that none can be added to see whether that helps."""
    query = ticking(trigger, cost, readers=12).run(4 * 3600)

    assert query.readers <= 3
    assert all(v.is_able for v in query.verdicts)


@pytest.mark.parametrize("cost", [0.3, 0.8, 1.5, 3.0])
def test_readers_that_a_peak_needed_are_taken_away_after_it(cost: float) -> None:
    query = ticking(1.0, cost).run(3600)
    query.load = 9000
    query.run(3600)
    assert query.readers == 12
    query.load = 800

    query.run(1800)

    assert query.readers <= 3
    assert query.verdicts[-1].is_able


def test_a_time_without_load_says_nothing_of_readers() -> None:
    query = ticking(1.0, 0.4)
    for _ in range(3):
        query.load = 3000
        query.run(3600)
        query.load = 0
        query.run(3600)

    assert max(v.readers for v in query.verdicts) <= 5
    assert all(v.is_able for v in query.verdicts)


def test_bursts_that_are_read_at_once_need_few_readers() -> None:
    query = ticking(1.0, 0.2)
    for _ in range(60):
        query.load = 3000
        query.run(1)
        query.load = 0
        query.run(59)

    assert max(v.readers for v in query.verdicts) <= 4
    assert all(v.is_able for v in query.verdicts)


def test_a_commit_that_is_long_now_and_then_adds_few_readers() -> None:
    """Such as one that compacts a table."""
    query = ticking(1.0, 0.1, load=1500, readers=3)
    for _ in range(200):
        query.cost = 3.0
        query.run(3)
        query.cost = 0.1
        query.run(9)

    assert max(v.readers for v in query.verdicts) <= 5
    assert all(v.is_able for v in query.verdicts)
