"""Group O: how many readers a load needs, with upstream's setup.

Splits are spread by their number. `factor` is what the present readers have to do, as a multiple of
what they do at the target utilisation.
"""

from collections import Counter
from dataclasses import replace

import pytest

from balanced_source.reasons import Reason
from balanced_source_operator.controller.autoscaling import (
    AutoscalerMemory,
    Policy,
    Sample,
    decide,
    observe,
)
from balanced_source_operator.controller.autoscaling.memory import Capacity
from balanced_source_operator.controller.autoscaling.verdict import Verdict

CAPACITY = 100.0
"""Records per second of one reader."""


def verdict(
    *, readers: int, splits: int, factor: float, most: int, least: int = 1, clusters: int = 1
) -> Verdict:
    """Return the decision when the load has been the same for long."""
    policy = Policy(min_readers=least, max_readers=most, scale_down_delay=0.0)
    load = factor * readers * CAPACITY * policy.target_utilization
    known = Capacity(rate=CAPACITY, at=0.0, is_measured=True, proven_at=0.0)
    memory = AutoscalerMemory(capacity=known)
    for tick in range(1, 40):
        now = 10.0 * tick
        counts = Counter(number % readers for number in range(splits))
        rates = [min(load / splits, CAPACITY / counts[n % readers]) for n in range(splits)]
        ids = [
            (f"c{cluster}", "t", number)
            for cluster in range(clusters)
            for number in range(splits // clusters)
        ]
        sample = Sample(
            at=now,
            readers=readers,
            unread=round(now * (load - sum(rates))),
            positions={split: round(now * rate) for split, rate in zip(ids, rates, strict=True)},
            owners={split: number % readers for number, split in enumerate(ids)},
            busy=None,
        )
        memory = observe(policy, memory, sample, now=now)
        memory = decide(policy, memory, wanted=readers, now=now)
        # What follows from the first decision is another story: only the load counts here.
        if memory.verdict is not None and memory.verdict.reason is not Reason.MEASURING:
            return replace(memory.verdict)
    raise AssertionError("nothing was decided")


@pytest.mark.scenario("O1")
def test_o1_down_to_an_even_number_of_splits_per_reader() -> None:
    """15 splits: three readers have five each, and carry 2.4 readers' load."""
    assert verdict(readers=6, splits=15, factor=0.4, most=128).readers == 3


@pytest.mark.scenario("O2")
def test_o2_up_to_one_split_per_reader() -> None:
    """15 splits: with fewer than 15 readers the busiest one has two, which is too much."""
    assert verdict(readers=7, splits=15, factor=1.2, most=128).readers == 15


@pytest.mark.scenario("O4")
def test_o4_bounded_by_limits() -> None:
    """35 splits: any number from 18 to 34 leaves two on the busiest reader, so none is added."""
    found = verdict(readers=22, splits=35, factor=1.1, most=30, least=20)

    assert (found.readers, found.reason) == (22, Reason.AT_MAXIMUM)
    assert "with 30 readers the busiest one would have as many splits as with 22" in found.message


@pytest.mark.scenario("O5")
def test_o5_up_to_the_next_divisor() -> None:
    """200 splits: 100 readers have two each; up to 128, no number has fewer on the busiest one."""
    assert verdict(readers=80, splits=200, factor=1.4, most=128).readers == 100


@pytest.mark.scenario("O6")
def test_o6_up_to_what_the_busiest_reader_carries() -> None:
    """199 splits, 96 readers' load: with 100 readers the busiest one has two splits, and suffices.

    Upstream takes 199 readers so that all have the same. Ours takes the fewest that suffice.
    """
    assert verdict(readers=24, splits=199, factor=4, most=1000).readers == 100


def test_no_more_readers_than_splits_are_started() -> None:
    found = verdict(readers=4, splits=6, factor=3, most=50)

    assert (found.readers, found.reason) == (6, Reason.AT_MAXIMUM)
    assert "each reader has one split" in found.message
    assert "Add partitions" in found.message


@pytest.mark.scenario("O7")
def test_o7_the_same_topic_on_two_clusters_counts_twice() -> None:
    """16 splits of one topic on two clusters: 12 readers' load needs 16 readers."""
    assert verdict(readers=8, splits=16, factor=1.5, most=128, clusters=2).readers == 16
