"""Rebalancing by measured loads: it reacts to a real change, and noise cannot make it flap."""

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from balanced_source.api import RebalanceCause, RebalanceMode, RebalancePolicy, SplitId
from balanced_source.assigners import DriftWatch, LoadAwareAssigner, Placement, gain, imbalance, minimum_gain, place
from support.placements import split_ids

POLICY = RebalancePolicy(mode=RebalanceMode.DRIFT, max_imbalance=1.2, min_interval=600.0)


@dataclass
class Simulation:
    """Readers whose loads are looked at once a minute; `load` says what each split costs then."""

    load: Callable[[int, float], float]
    splits: int = 40
    readers: int = 4
    now: float = 0.0
    rebalances: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.ids = split_ids(self.splits)
        self.owners: dict[SplitId, int] = place(LoadAwareAssigner(), self._question(may_move=False, owners={}))
        self.watch = DriftWatch(changed_at=0.0)

    def _question(self, *, may_move: bool, owners: dict[SplitId, int]) -> Placement:
        weights = {s: self.load(i, self.now) for i, s in enumerate(self.ids)}
        pending = [s for s in self.ids if s not in owners]
        return Placement(parallelism=self.readers, owners=owners, pending=pending, may_move=may_move, weights=weights)

    def run(self, seconds: float) -> None:
        for _ in range(int(seconds / 60)):
            self.now += 60
            question = self._question(may_move=True, owners=self.owners)
            now_imbalanced = imbalance(self.owners, question.weights, self.readers)
            self.watch, is_due = self.watch.look(POLICY, now_imbalanced, self.now)
            if is_due:
                self.watch = self.watch.tried(POLICY, self.now)
                if gain(LoadAwareAssigner(), question) >= minimum_gain(POLICY):
                    self.owners |= place(LoadAwareAssigner(), question)
                    self.rebalances.append(self.now)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([0.1, 0.5, 0.9]))
def test_noise_causes_ever_fewer_rebalances(seed: int, noise: float) -> None:
    """Loads that jump at every look, so that no assignment is ever right."""
    rng = random.Random(seed)
    simulation = Simulation(load=lambda i, _: (1 + i) * rng.uniform(1 - noise, 1 + noise), splits=12)

    day = 86_400.0
    simulation.run(3 * day)
    assert len(simulation.rebalances) <= math.log2(3 * day / POLICY.min_interval) + 3 * day / (64 * POLICY.min_interval)


def test_constant_loads_are_left_alone() -> None:
    simulation = Simulation(load=lambda i, _: 1.0 + i % 7)

    simulation.run(86_400)
    assert simulation.rebalances == []


def test_a_change_that_lasts_is_followed_once_and_soon() -> None:
    """At noon the first ten splits become ten times as busy."""
    noon = 43_200.0
    simulation = Simulation(load=lambda i, now: 10.0 if i % 4 == 0 and now > noon else 1.0)

    simulation.run(86_400)
    assert len(simulation.rebalances) == 1
    assert noon < simulation.rebalances[0] <= noon + POLICY.min_interval
    weights = {s: simulation.load(i, simulation.now) for i, s in enumerate(simulation.ids)}
    assert imbalance(simulation.owners, weights, 4) <= 1.05


def test_a_peak_that_passes_is_not_followed() -> None:
    simulation = Simulation(load=lambda i, now: 10.0 if i % 4 == 0 and 7200 <= now < 7440 else 1.0)

    simulation.run(20_000)
    assert simulation.rebalances == []


def test_what_no_move_can_mend_is_left_alone() -> None:
    """One split is heavier than all the others: its reader is full, and that is as good as it gets."""
    simulation = Simulation(load=lambda i, _: 1000.0 if i == 0 else 1.0)

    simulation.run(86_400)
    assert simulation.rebalances == []


def test_after_calm_the_pause_is_short_again() -> None:
    watch = DriftWatch(changed_at=0.0, pause=4 * POLICY.min_interval)

    before, _ = watch.look(POLICY, 1.0, 19 * POLICY.min_interval)
    after, _ = watch.look(POLICY, 1.0, 20 * POLICY.min_interval)
    assert (before.pause, after.pause) == (4 * POLICY.min_interval, 0.0)


def test_other_moves_begin_the_pause_anew() -> None:
    watch = DriftWatch(changed_at=0.0, over_since=0.0).moved(10_000.0)

    _, is_due = watch.look(POLICY, 9.0, 10_000.0 + POLICY.min_interval - 1)
    assert not is_due


@pytest.mark.parametrize(
    ("mode", "allowed"),
    [
        (RebalanceMode.MANUAL, {RebalanceCause.REQUESTED}),
        (RebalanceMode.ON_RESCALE, {RebalanceCause.REQUESTED, RebalanceCause.RESCALE, RebalanceCause.RECOVERY}),
        (RebalanceMode.DRIFT, set(RebalanceCause)),
    ],
)
def test_modes_allow_causes(mode: RebalanceMode, allowed: set[RebalanceCause]) -> None:
    policy = RebalancePolicy(mode=mode, max_moves=3)

    assert {cause for cause in RebalanceCause if policy.allows(cause)} == allowed
    assert policy.limit(RebalanceCause.DRIFT) == policy.limit(RebalanceCause.REQUESTED) == 3
    assert policy.limit(RebalanceCause.RESCALE) is None, "a rescale moves what it must"
