"""The parts of a rebalance by measured loads: growth, evidence, pauses and what is remembered."""

import math
from dataclasses import replace

import pytest

from balanced_source.api import Position, SplitId
from balanced_source.assigners import DriftWatch, LoadAwareAssigner, Placement, RoundRobinAssigner
from balanced_source.assigners._drift import (
    DOUBT,
    LONGEST,
    ONSET,
    REMEMBERED,
    STEP_DELAY,
    TRIAL,
    Drift,
    Proposal,
    _dropped,
    _error,
    _followed,
    imbalance,
)
from balanced_source.assigners._noise import NoiseHistory, _means
from support.drift import POLICY
from support.placements import split_ids

A, B, C, D = split_ids(4)
INTERVAL = POLICY.min_interval
WEIGHTS = {A: 3.0, B: 4.0}


def test_without_splits_readers_are_even() -> None:
    assert imbalance({}, {}, 3) == 1.0
    assert imbalance({A: 0, B: 0}, {}, 2) == 2.0


@pytest.mark.parametrize(
    ("positions", "grown"),
    [
        ({A: 150, B: 260}, {A: 50.0, B: 60.0}),
        ({A: 150, B: 200}, {A: 50.0, B: 0.0}),
        ({A: 150, B: 199}, {A: 50.0}),
        ({A: 150, B: None}, {A: 50.0}),
        ({A: 150, C: 7, D: 7}, {A: 50.0}),
        ({A: 100, B: 200}, WEIGHTS),
        ({A: 99, B: None}, WEIGHTS),
        ({}, WEIGHTS),
    ],
    ids=["all", "idle", "back", "unknown", "new", "all idle", "nothing known", "no report"],
)
def test_recent_loads_are_the_growth_of_positions_that_grow(
    positions: dict[SplitId, Position], grown: dict[SplitId, float]
) -> None:
    watch = DriftWatch(changed_at=0.0, positions={A: 100, B: 200, D: None})
    placement = Placement(parallelism=2, owners={A: 0, B: 1}, weights=WEIGHTS)

    assert watch._recent(LoadAwareAssigner(), placement, positions) == grown
    assert watch._recent(RoundRobinAssigner(), placement, positions) == {}


@pytest.mark.parametrize(
    ("pause", "after", "expected"),
    [
        (0.0, POLICY.max_imbalance, 2 * INTERVAL),
        (3 * INTERVAL, POLICY.max_imbalance, 6 * INTERVAL),
        (0.0, POLICY.max_imbalance + 0.01, STEP_DELAY * INTERVAL),
        (LONGEST * INTERVAL - 1, 1.0, LONGEST * INTERVAL),
    ],
    ids=["first", "second", "a step of several", "longest"],
)
def test_the_next_rebalance_waits_twice_as_long_but_after_a_step_of_several(
    pause: float, after: float, expected: float
) -> None:
    watch = DriftWatch(changed_at=0.0, pause=pause)
    drift = Drift(moves={A: 1}, before=5.0, after=after)

    followed = _followed(watch, POLICY, {A: 0}, drift, 1000.0)

    assert followed.pause == pytest.approx(expected)
    assert (followed.changed_at, followed.proposal) == (1000.0, None)


def test_former_readers_are_forgotten_in_time() -> None:
    now = 2 * REMEMBERED * INTERVAL
    oldest = now - REMEMBERED * INTERVAL
    watch = DriftWatch(
        changed_at=0.0, former={A: (5, oldest), B: (6, oldest - 1), C: (7, oldest + 1)}
    )
    drift = Drift(moves={C: 1, D: 2}, before=3.0, after=1.0)

    followed = _followed(watch, POLICY, {A: 0, B: 0, C: 3, D: 4}, drift, now)

    assert followed.former == {A: (5, oldest), C: (3, now), D: (4, now)}


def history(*blocks: float) -> NoiseHistory:
    """Return a history with these means, in blocks as long as a trial."""
    return NoiseHistory(block=TRIAL * INTERVAL, segments=(blocks,))


def proposal(gains: NoiseHistory) -> Proposal:
    """Return moves that were on trial for some time."""
    return Proposal(moves={A: 1}, owners={A: 0}, since=0.0, gains=gains)


def test_a_trial_that_ends_without_a_rebalance_is_part_of_the_history() -> None:
    """Otherwise the history would lack just the times in which noise was large."""
    watch = DriftWatch(changed_at=0.0, proposal=proposal(history(9.0)), noise=history(1.0, 2.0))

    assert _dropped(watch).noise == history(1.0, 2.0).joined(history(9.0))
    assert _dropped(watch).proposal is None
    assert _dropped(replace(watch, noise=None)).noise is None


def test_the_newest_blocks_before_a_proposal_say_nothing_about_noise() -> None:
    """They contain the change itself, and are no evidence that it is noise."""
    tried, duration = proposal(history(2.0)), 4 * TRIAL * INTERVAL
    calm = DriftWatch(changed_at=0.0, noise=history(1.0, 1.0, 1.0, *[9.0] * ONSET))
    noisy = DriftWatch(changed_at=0.0, noise=history(1.0, 9.0, 1.0, *[1.0] * ONSET))

    assert _error(calm, tried, duration) == 0.0
    assert _error(noisy, tried, duration) > 0.0
    assert _error(replace(noisy, noise=None), tried, duration) == math.inf


def test_the_error_of_a_mean_grows_with_the_noise_and_shrinks_with_its_pairs() -> None:
    """By the Allan variance of neighbouring blocks, with a margin for few of them."""
    noisy = NoiseHistory(block=10.0, segments=((4.0, 6.0) * 10,))
    deviation = math.sqrt(2.0) * (1 + 12 / 19)

    assert noisy.error_of_mean(1000.0) == pytest.approx(deviation / 10)
    assert noisy.error_of_mean(10.0) == pytest.approx(deviation)


def test_blocks_are_grouped_from_the_newest_one() -> None:
    assert list(_means((9.0, 1.0, 2.0, 3.0, 6.0), 2)) == [1.5, 4.5]
    assert list(_means((1.0, 2.0), 4)) == []


def decided(gain: float, *, noise: float) -> tuple[bool, bool]:
    """Return whether a trial continues after a gain, and whether it ended with a rebalance."""
    owners = {A: 0, B: 0, C: 1, D: 1}
    blocks = (1.0, 1.0 + noise) * 20
    gains = NoiseHistory(block=TRIAL * INTERVAL)
    tried = Proposal(moves={A: 1}, owners=owners, since=0.0, gains=gains, total=99 * gain, looks=99)
    watch = DriftWatch(changed_at=0.0, proposal=tried, noise=history(*blocks))
    even = Placement(parallelism=2, owners=owners, weights=dict.fromkeys(owners, 1.0))
    after, drift = watch.look(POLICY, LoadAwareAssigner(), even, positions={}, now=INTERVAL)
    return after.proposal is not None, drift is not None


def test_a_trial_ends_when_the_gain_is_certain_or_has_become_unlikely() -> None:
    assert DOUBT > 0
    assert decided(2.0, noise=0.001) == (False, True)
    assert decided(0.0, noise=0.001) == (False, False)
    assert decided(0.2, noise=1.0) == (True, False)


def test_a_proposal_for_other_owners_ends_and_divides_the_history() -> None:
    """Splits came or went: means before and after that are not compared."""
    noise = history(1.0, 2.0)
    watch = DriftWatch(changed_at=0.0, proposal=proposal(history(9.0)), noise=noise)
    same, other = (Placement(parallelism=2, owners={A: owner}) for owner in (0, 1))

    assert watch._still_valid(same) is watch
    ended = watch._still_valid(other)
    assert (ended.proposal, ended.noise) == (None, noise.broken())
    assert replace(watch, noise=None)._still_valid(other).noise is None
    idle = replace(watch, proposal=None)
    assert idle._still_valid(other) is idle


def test_moves_for_another_reason_end_a_trial_and_divide_the_history() -> None:
    noise = history(1.0, 2.0)
    watch = DriftWatch(changed_at=0.0, proposal=proposal(history(9.0)), noise=noise)

    moved = watch.moved(77.0)
    assert (moved.proposal, moved.noise, moved.changed_at) == (None, noise.broken(), 77.0)
    assert replace(watch, noise=None).moved(77.0).noise is None
