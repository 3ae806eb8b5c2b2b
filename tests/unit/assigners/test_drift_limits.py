"""Exactly at the limits of a trial: its shortest and longest time, its gain, and the pauses."""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from balanced_source.api import RebalanceMode, RebalancePolicy
from balanced_source.assigners import DriftWatch, Placement
from balanced_source.assigners._drift import (
    CALM,
    CAUTIOUS,
    CONFIDENCE,
    EXPIRY,
    LONG_TRIAL,
    LOOKS,
    TRIAL,
    Proposal,
    _confidence,
    _may_propose,
    _observed,
    _tried,
    minimum_gain,
)
from balanced_source.assigners._noise import MAX_BLOCKS, NoiseHistory, _recent
from support.placements import split_ids

A, B, C, D = split_ids(4)
POLICY = RebalancePolicy(mode=RebalanceMode.DRIFT, max_imbalance=2.0, min_interval=1000.0)
"""A rebalance must gain a half, and the shortest trial takes 500 seconds."""
INTERVAL = POLICY.min_interval
OWNERS = {A: 0, B: 0, C: 1, D: 1}
EVEN = Placement(parallelism=2, owners=OWNERS, weights=dict.fromkeys(OWNERS, 1.0))
CERTAIN = NoiseHistory(block=TRIAL * INTERVAL, segments=((1.0,) * 8,))
"""Nothing has ever changed, so the error of any mean is 0."""


def tried(mean: float, now: float, noise: NoiseHistory = CERTAIN) -> tuple[bool, bool]:
    """Return whether a trial continues with this mean gain, and whether it ends with a rebalance.

    The look that is made now shows a loss of a half.
    """
    gains = NoiseHistory(block=TRIAL * INTERVAL)
    proposal = Proposal(
        moves={A: 1}, owners=OWNERS, since=0.0, gains=gains, total=4 * mean + 0.5, looks=3
    )
    watch = DriftWatch(changed_at=0.0, proposal=proposal, noise=noise)
    after, drift = _tried(watch, POLICY, EVEN, now)
    if after.proposal is not None:
        assert (after.proposal.mean, after.proposal.looks) == (mean, 4)
    return after.proposal is not None, drift is not None


@pytest.mark.parametrize(
    ("mean", "now", "expected"),
    [
        (1.0, TRIAL * INTERVAL - 1, (True, False)),
        (1.0, TRIAL * INTERVAL, (False, True)),
        (0.5, TRIAL * INTERVAL, (True, False)),
        (0.5, EXPIRY * INTERVAL, (True, False)),
        (0.5, EXPIRY * INTERVAL + 1, (False, False)),
        (0.25, TRIAL * INTERVAL, (False, False)),
    ],
    ids=["too short", "just long enough", "just the gain", "long", "too long", "too little"],
)
def test_a_trial_at_its_limits(mean: float, now: float, expected: tuple[bool, bool]) -> None:
    assert minimum_gain(POLICY) == 0.5
    assert tried(mean, now) == expected


def test_a_gain_of_exactly_the_confidence_is_not_enough() -> None:
    noise = NoiseHistory(block=TRIAL * INTERVAL, segments=((1.0, 1.0, 1.0, 9.0) * 8,))

    assert tried(0.5 - 0.125, TRIAL * INTERVAL, noise) == (True, False), "within the doubt"
    assert tried(99.0, TRIAL * INTERVAL, noise) == (False, True)


@pytest.mark.parametrize(
    ("moves", "duration", "expected"),
    [
        ({A: 1, B: 1}, LONG_TRIAL * INTERVAL, CONFIDENCE),
        ({A: 1, B: 1}, LONG_TRIAL * INTERVAL - 1, CAUTIOUS),
        ({A: 1, C: 0}, LONG_TRIAL * INTERVAL, CAUTIOUS),
        ({C: 0}, LONG_TRIAL * INTERVAL, CAUTIOUS),
        ({C: 2}, LONG_TRIAL * INTERVAL, CONFIDENCE),
    ],
    ids=["long", "short", "one of two returns", "returns", "leaves again"],
)
def test_short_trials_and_splits_that_return_need_more_evidence(
    moves: dict[tuple[str, str, int], int], duration: float, expected: float
) -> None:
    proposal = Proposal(moves=dict(moves), owners=OWNERS, since=100.0, gains=CERTAIN)
    watch = DriftWatch(changed_at=0.0, former={C: (0, 50.0)})

    assert _confidence(watch, POLICY, proposal, 100.0 + duration) == expected


@pytest.mark.parametrize(
    ("pause", "since_change", "since_proposal", "expected"),
    [
        (0.0, INTERVAL - TRIAL * INTERVAL, math.inf, True),
        (0.0, INTERVAL - TRIAL * INTERVAL - 1, math.inf, False),
        (3 * INTERVAL, 3 * INTERVAL - TRIAL * INTERVAL, math.inf, True),
        (3 * INTERVAL, 3 * INTERVAL - TRIAL * INTERVAL - 1, math.inf, False),
        (0.0, INTERVAL, 2 * INTERVAL / LOOKS, True),
        (0.0, INTERVAL, 2 * INTERVAL / LOOKS - 1, False),
    ],
)
def test_a_proposal_is_due_when_its_trial_may_end_with_the_pause(
    pause: float, since_change: float, since_proposal: float, *, expected: bool
) -> None:
    now = 1e6
    watch = DriftWatch(changed_at=now - since_change, proposed_at=now - since_proposal, pause=pause)

    assert _may_propose(watch, POLICY, now) is expected


@pytest.mark.parametrize(
    ("average", "calm_for", "pause"),
    [
        (2.0, (1 + CALM) * 3 * INTERVAL, 0.0),
        (2.0, (1 + CALM) * 3 * INTERVAL - 1, 3 * INTERVAL),
        (2.1, (1 + CALM) * 3 * INTERVAL, 3 * INTERVAL),
    ],
)
def test_a_long_pause_ends_after_calm_times(average: float, calm_for: float, pause: float) -> None:
    watch = DriftWatch(changed_at=1000.0, pause=3 * INTERVAL)

    after = _observed(watch, POLICY, average, 1.5, 1000.0 + calm_for)

    assert after.pause == pause
    assert after.noise == NoiseHistory(block=TRIAL * INTERVAL).observe(1.5, 1000.0 + calm_for)
    again = _observed(replace(after, changed_at=0.0), POLICY, 3.0, 2.5, 1001.0 + calm_for)
    assert again.noise is not None
    assert again.noise.count == 2


def test_moves_start_the_pause_and_end_the_trial() -> None:
    watch = DriftWatch(changed_at=0.0)

    assert not watch.is_look_due(POLICY, -math.inf)
    assert watch.is_look_due(POLICY, 0.0)
    looked = replace(watch, looked_at=100.0)
    assert looked.is_look_due(POLICY, 100.0 + INTERVAL / LOOKS)
    assert not looked.is_look_due(POLICY, 99.0 + INTERVAL / LOOKS)


@given(st.lists(st.integers(0, 60), min_size=1, max_size=6))
def test_only_the_newest_blocks_of_all_segments_are_kept(sizes: list[int]) -> None:
    numbers = iter(range(sum(sizes)))
    segments = tuple(tuple(float(next(numbers)) for _ in range(size)) for size in sizes)
    kept = {block for segment in segments for block in segment if block >= sum(sizes) - MAX_BLOCKS}

    found = _recent(segments)

    expected = [tuple(b for b in segment if b in kept) for segment in segments]
    assert found == (*(s for s in expected[:-1] if s), expected[-1])


def spread_of(blocks: Sequence[float]) -> float:
    """Return the mean square of the steps between neighbours, halved, as a deviation."""
    steps = [(after - before) ** 2 / 2 for before, after in pairwise(blocks)]
    return math.sqrt(sum(steps) / len(steps)) * (1 + 12 / len(steps))


def test_at_its_own_length_a_block_averages_nothing_out() -> None:
    blocks = (*(1.0, 2.0) * 20, 40.0, *(1.0, 2.0) * 20)
    history = NoiseHistory(block=10.0, segments=(blocks,))
    burst = 0.7 * math.sqrt(39.0**2 / 2)

    assert burst > spread_of(blocks)
    assert history._error(1, 10.0) == pytest.approx(burst)
    assert history._error(1, 40.0) == pytest.approx(spread_of(blocks) / 2)
    noisy = NoiseHistory(block=10.0, segments=((1.0, 9.0, 1.0),))
    assert noisy._error(1, 10.0) == pytest.approx(spread_of((1.0, 9.0, 1.0)))
    assert noisy._error(2, 10.0) == 0.0, "too short to compare two blocks with two others"
