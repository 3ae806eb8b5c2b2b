"""Micro-batches that last longer than anything that the autoscaler measures by."""

from dataclasses import dataclass, field, replace
from itertools import pairwise

import pytest

from balanced_source.reasons import Reason
from balanced_source_operator.controller.autoscaling import (
    AutoscalerMemory,
    Policy,
    Sample,
    Verdict,
    decide,
    observe,
)
from support.builders import make_report

SPLITS = [("c", "t", number) for number in range(12)]


@dataclass
class Query:
    """A query without limits: a micro-batch reads everything that there is when it begins.

    Attributes:
        load: records per second that arrive.
        capacity: records per second of one reader.
        policy: with the trigger interval of the query.
        readers: number of readers.
        cost: seconds of a micro-batch that do not depend on its records.
    """

    load: float
    capacity: float
    policy: Policy
    readers: int
    cost: float = 0.0
    now: int = 0
    read: float = 0.0
    memory: AutoscalerMemory = field(default_factory=AutoscalerMemory)
    verdicts: list[Verdict] = field(default_factory=list)

    def run(self, seconds: int) -> "Query":
        """Let time pass; the driver reports every 10 s, and when a micro-batch begins or ends."""
        until = self.now + seconds
        end, upto, due, adopted = 0.0, 0.0, 0.0, self.readers
        while self.now < until:
            if is_end := self.now >= end and self.read < upto:
                self.read = upto
            if is_begin := self.now >= max(end, due):
                adopted, upto = self.readers, self.load * self.now
                end = self.now + self.cost + (upto - self.read) / (adopted * self.capacity)
                due = self.now + self.policy.trigger
            if is_end or is_begin or not self.now % 10:
                self._report(adopted)
            self.now += 1
        return self

    def _report(self, adopted: int) -> None:
        sample = Sample(
            at=self.now,
            readers=adopted,
            unread=round(self.load * self.now - self.read),
            positions=dict.fromkeys(SPLITS, int(self.read / len(SPLITS))),
            owners={split: number % adopted for number, split in enumerate(SPLITS)},
        )
        self.memory = observe(self.policy, self.memory, sample, now=self.now)
        self.memory = decide(self.policy, self.memory, wanted=self.readers, now=self.now)
        assert self.memory.verdict is not None
        self.verdicts.append(self.memory.verdict)
        self.readers = self.memory.verdict.readers


def policy(trigger: float = 0.0, *, most: int = 12) -> Policy:
    """Readers share splits, so that all of them have as much to do."""
    return Policy(min_readers=1, max_readers=most, trigger=trigger, shares_splits=True)


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


@pytest.mark.parametrize("cost", [20.0, 60.0, 400.0])
def test_the_capacity_is_measured_from_end_to_end_of_long_micro_batches(cost: float) -> None:
    """Micro-batches of a minute and more, whose time is that of the sink."""
    query = Query(load=3000, capacity=1000, cost=cost, policy=policy(), readers=6).run(7200)

    found = query.memory.capacity
    assert found is not None
    assert found.rate <= 1.05 * 3000 / 6, "they read what arrives"


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
