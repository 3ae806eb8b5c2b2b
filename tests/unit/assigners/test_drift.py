"""Rebalancing by measured loads: it reacts to lasting changes, and noise cannot make it flap."""

import math
import random
from typing import ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from balanced_source.api import RebalanceCause, RebalanceMode, RebalancePolicy, SplitId
from balanced_source.assigners import DriftWatch, LoadAwareAssigner, Placement, _drift
from balanced_source.assigners._drift import Proposal
from balanced_source.assigners._noise import NoiseHistory
from support.drift import DAY, POLICY, STEP, Day, Rate, noise_shapes, softened
from support.placements import split_ids

QUIET: Rate = lambda _split, _now: 1.0  # noqa: E731 - a value among others of its type
SHAPES = ("jitter", "ten minutes", "lumps", "heavy tail", "waves")


@pytest.mark.parametrize("shape", SHAPES)
def test_a_day_of_noise_moves_nothing_to_and_fro(shape: str) -> None:
    """All true rates are constant, and the splits are as even as can be at the start."""
    day = Day(true=lambda i, _: 100.0 * (1 + i % 5), noise=noise_shapes(0)[shape])
    before = day.true_imbalance

    day.run(DAY)
    assert day.returns == 0
    assert day.true_imbalance <= before


def uneven(split: int, now: float, *, doubles_at: float = math.inf) -> float:
    """The first of sixteen splits doubles.

    1.33 times the ideal for its reader, of which 0.15 can be mended.
    """
    return (200.0 if split < 4 else 66.0) * (2 if split == 0 and now > doubles_at else 1)


@pytest.mark.parametrize(
    ("shape", "hours"), [(None, 1), (None, 12), ("jitter", 12), ("ten minutes", 12)]
)
def test_a_split_that_doubles_for_good_is_acted_on_within_15_minutes(
    shape: str | None, hours: int
) -> None:
    """With constant rates, and with noise of up to 4 %."""
    noise = QUIET if shape is None else softened(noise_shapes(1)[shape], 0.05)
    start = hours * 3600.0
    day = Day(true=lambda i, now: uneven(i, now, doubles_at=start), noise=noise).run(start)
    assert day.moves == []

    day.run(900.0)
    assert day.moves
    assert day.true_imbalance < 1.2


def test_each_rebalance_makes_the_next_one_wait_longer() -> None:
    day = Day(true=lambda i, now: uneven(i, now, doubles_at=3600.0), noise=QUIET).run(3600.0)
    assert day.watch.pause == 0

    while not day.moves and day.now < 3 * 3600:
        day.run(STEP)

    assert day.watch.pause == 2 * POLICY.min_interval


def test_a_proposal_is_judged_by_what_splits_have_read_since_although_one_is_idle() -> None:
    """On average the first split costs much; by now it has nothing to read."""
    ids = split_ids(4)
    owners = dict(zip(ids, (0, 0, 1, 1), strict=True))
    proposal = Proposal(
        moves={ids[0]: 1}, owners=owners, since=0.0, gains=NoiseHistory(block=300.0)
    )
    watch = DriftWatch(
        changed_at=0.0, looked_at=0.0, positions=dict.fromkeys(ids, 1000), proposal=proposal
    )
    average = dict(zip(ids, (10.0, 10.0, 1.0, 1.0), strict=True))
    asked = Placement(parallelism=2, owners=owners, weights=average, may_move=True)

    positions = dict(zip(ids, (1000, 1200, 1100, 1100), strict=True))
    after, _ = watch.look(POLICY, LoadAwareAssigner(), asked, positions=positions, now=60.0)
    assert after.proposal is not None
    assert after.proposal.mean == 0


def test_former_readers_of_moved_splits_are_remembered() -> None:
    """A split that goes back needs more evidence: that is what following noise looks like."""
    day = Day(true=lambda i, now: uneven(i, now, doubles_at=3600.0), noise=QUIET).run(3600.0)
    while not day.moves and day.now < 3 * 3600:
        day.run(STEP)

    assert {s: left for s, (left, _) in day.watch.former.items()} == {
        s: former for _, s, former, _ in day.moves
    }
    assert {at for _, at in day.watch.former.values()} == {day.now}


def test_an_uneven_start_is_corrected_under_noise_that_leaves_it_visible() -> None:
    """Owners of the morning, when all splits had the same rate."""
    day = Day(true=lambda _i, _now: 100.0, noise=noise_shapes(2)["ten minutes"])
    day.true = lambda i, _now: 100.0 if i % 4 else 1000.0
    day.owners = {s: i % 4 for i, s in enumerate(day.ids)}
    before = day.true_imbalance

    day.run(DAY / 2)
    assert before > 3
    assert day.true_imbalance < 2


def test_a_peak_that_passes_is_not_followed() -> None:
    day = Day(true=uneven, noise=lambda i, now: 8.0 if i == 0 and 7200 <= now < 7440 else 1.0)

    day.run(20_000.0)
    assert day.moves == []


def test_an_imbalance_that_no_move_can_reduce_is_left_alone() -> None:
    """One split is heavier than all the others: its reader is full, and no move changes that."""
    day = Day(true=lambda i, _: 1000.0 if i == 0 else 1.0, noise=QUIET)

    day.run(DAY / 2)
    assert day.moves == []


@settings(max_examples=3, deadline=None)
@given(st.integers(0, 2**32))
def test_loads_that_jump_at_every_look_are_not_followed(seed: int) -> None:
    rng = random.Random(seed)
    day = Day(true=lambda _i, _now: 1000.0, noise=lambda _i, _now: rng.uniform(0.1, 1.9), splits=12)

    day.run(DAY / 2)
    assert day.moves == []


def looked(watch: DriftWatch, owners: dict[SplitId, int], now: float) -> DriftWatch:
    """The watch after a look at two readers whose splits cost the same."""
    question = Placement(
        parallelism=2, owners=owners, may_move=True, weights=dict.fromkeys(owners, 1.0)
    )
    watch, drift = watch.look(POLICY, LoadAwareAssigner(), question, positions={}, now=now)
    assert drift is None
    return watch


def test_a_trial_ends_when_owners_change_for_another_reason() -> None:
    """A split that was removed meanwhile must not be moved."""
    owners = dict.fromkeys(split_ids(4), 0)
    watch = looked(DriftWatch(changed_at=-1e6), dict(owners), 60.0)
    assert watch.proposal is not None

    del owners[next(iter(watch.proposal.moves))]
    watch = looked(watch, owners, 120.0)
    assert watch.proposal is None or watch.proposal.owners == owners


class Asked(LoadAwareAssigner):
    """Counts how often it is asked for moves, and has none."""

    asked: ClassVar[int] = 0

    def place(self, placement: Placement) -> dict[SplitId, int]:
        type(self).asked += 1
        return {}


def test_moves_that_gain_too_little_are_asked_for_again_at_every_second_look() -> None:
    """A look is cheap, and an answer of the assigner is not."""
    owners = dict.fromkeys(split_ids(4), 0)
    question = Placement(parallelism=2, owners=owners, may_move=True)
    watch, asked = DriftWatch(changed_at=-1e6), []
    for look in range(6):
        now = look * POLICY.min_interval / 10
        assert watch.is_look_due(POLICY, now)
        watch, _ = watch.look(POLICY, Asked(), question, positions={}, now=now)
        assert not watch.is_look_due(POLICY, now + POLICY.min_interval / 10 - 1)
        asked.append(Asked.asked)

    assert asked == [1, 1, 2, 2, 3, 3]


def test_the_pause_is_short_again_after_a_calm_period() -> None:
    even = {s: i % 2 for i, s in enumerate(split_ids(4))}
    watch = DriftWatch(changed_at=0.0, pause=4 * POLICY.min_interval)

    before = looked(watch, even, 19 * POLICY.min_interval)
    after = looked(watch, even, 20 * POLICY.min_interval)
    assert (before.pause, after.pause) == (4 * POLICY.min_interval, 0.0)


def test_other_moves_restart_the_pause() -> None:
    owners = dict.fromkeys(split_ids(4), 0)
    watch = DriftWatch(changed_at=0.0).moved(10_000.0)

    soon = looked(watch, owners, 10_000.0 + POLICY.min_interval / 2 - 1)
    later = looked(watch, owners, 10_000.0 + POLICY.min_interval / 2)
    assert (soon.proposal is None, later.proposal is None) == (True, False)


@pytest.mark.parametrize(
    ("mode", "allowed"),
    [
        (RebalanceMode.MANUAL, {RebalanceCause.REQUESTED}),
        (
            RebalanceMode.ON_RESCALE,
            {RebalanceCause.REQUESTED, RebalanceCause.RESCALE, RebalanceCause.RECOVERY},
        ),
        (RebalanceMode.DRIFT, set(RebalanceCause)),
    ],
)
def test_modes_allow_causes(mode: RebalanceMode, allowed: set[RebalanceCause]) -> None:
    policy = RebalancePolicy(mode=mode, max_moves=3)

    assert {cause for cause in RebalanceCause if policy.allows(cause)} == allowed
    assert policy.limit(RebalanceCause.DRIFT) == policy.limit(RebalanceCause.REQUESTED) == 3
    assert policy.limit(RebalanceCause.RESCALE) is None, "a rescale moves what it must"


@pytest.mark.parametrize(("back", "confidence"), [(7, _drift.CONFIDENCE), (1, _drift.CAUTIOUS)])
def test_a_split_that_goes_back_to_its_former_reader_needs_more_evidence(
    back: int, confidence: float
) -> None:
    a, b = split_ids(2)
    watch = DriftWatch(changed_at=0.0, former={a: (1, 0.0)})
    proposal = _drift.Proposal(
        moves={a: back, b: 2}, owners={}, since=0.0, gains=NoiseHistory(block=60.0)
    )
    late = _drift.LONG_TRIAL * POLICY.min_interval

    assert _drift._confidence(watch, POLICY, proposal, late) == confidence
    assert _drift._confidence(watch, POLICY, proposal, late - 1) == _drift.CAUTIOUS


def test_a_trial_without_a_result_ends_and_another_proposal_may_follow() -> None:
    """The loads that suggested it are no longer those of today."""
    ids = split_ids(4)
    owners = dict(zip(ids, (0, 0, 0, 1), strict=True))
    # As long as nothing is known of the noise, no gain is large or small enough.
    noise = NoiseHistory(block=_drift.TRIAL * POLICY.min_interval)
    proposal = Proposal(moves={ids[0]: 1}, owners=owners, since=0.0, gains=noise)
    watch = DriftWatch(changed_at=-1e6, proposal=proposal)
    expiry = _drift.EXPIRY * POLICY.min_interval

    assert looked(watch, owners, expiry).proposal is not None
    assert looked(watch, owners, expiry + 1).proposal is None
