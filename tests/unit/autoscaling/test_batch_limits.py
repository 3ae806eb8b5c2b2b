"""Micro-batches that a limit keeps small: readers wait for the trigger, whatever they can do."""

from dataclasses import replace

import pytest

from balanced_source.reasons import Reason
from balanced_source_operator.controller.autoscaling import BatchTimes
from balanced_source_operator.controller.autoscaling.host_samples import together
from balanced_source_operator.controller.autoscaling.samples import between
from support.batch_query import Query, policy


def limited(trigger: float, *, load: float = 1000, limit: float = 3600) -> Query:
    """A source whose micro-batches read no more than a limit of records per second."""
    return Query(
        load=load,
        capacity=1000,
        readers=2,
        cost=0.2,
        noise=0.1,
        policy=policy(trigger),
        limit=limit * trigger,
        tick=0.25,
        spacing=2.0,
        is_timed=True,
    )


@pytest.mark.parametrize("trigger", [1.0, 10.0])
def test_a_backlog_that_a_limit_works_off_slowly_teaches_no_capacity(trigger: float) -> None:
    query = limited(trigger).run(3600)
    known = query.memory.capacity
    assert known is not None
    query.arrived += 2_000_000
    query.run(1200)
    query.run(3600)

    after = query.memory.capacity
    assert after is not None
    assert after.rate == pytest.approx(known.rate, rel=0.1)
    assert query.readers <= 2


@pytest.mark.parametrize("trigger", [1.0, 10.0])
def test_a_limit_that_is_too_low_is_named_and_adds_no_readers(trigger: float) -> None:
    query = limited(trigger, load=1500, limit=1000).run(3600)

    verdict = query.verdicts[-1]
    assert (verdict.readers, verdict.reason) == (2, Reason.DOWNSTREAM_LIMIT)
    assert not verdict.is_able
    assert verdict.message.startswith("2 readers wait for the trigger interval")
    assert verdict.message.endswith("Raise limits.maxOffsetsPerTrigger, or remove it")

    query.limit = 1e9
    query.run(1800)
    assert query.verdicts[-1].is_able


def test_a_driver_that_does_not_know_its_trigger_interval_says_nothing_of_limits() -> None:
    before = limited(1.0).run(20).sample()
    after = replace(before, at=before.at + 10, pace=BatchTimes(10, 20.0, None))

    assert between(replace(before, pace=BatchTimes(0, 0.0, None)), after).late is None
    known = between(replace(before, pace=BatchTimes(0, 0.0)), replace(after, pace=BatchTimes(5, 9)))
    assert known.late == 0.0
    unknown = between(before, replace(after, pace=None))
    both = together([known, unknown], 1.0)
    assert both is not None
    assert both.late is None, "one host that does not say it is enough"
