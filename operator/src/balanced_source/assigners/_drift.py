"""Imbalance that develops by itself: when a rebalance is worth its moves.

Measured loads are noisy, and noise of ten minutes looks like a change when it is observed for five.
A move that follows noise is followed by a move back. Therefore a rebalance has to pass a trial
before it happens:

1. When the imbalance exceeds `RebalancePolicy.max_imbalance`, the assigner proposes moves. The
   proposal is *frozen*: the loads that suggested it are no evidence for it, because it was chosen
   to fit them.
2. Each later look measures what the frozen proposal would gain with the loads of that moment.
3. The proposal is carried out as soon as its mean gain exceeds the minimum gain by `CONFIDENCE`
   standard errors. The standard error follows from how much the imbalance used to change by itself
   (see `_noise`): with steady loads a trial ends after `TRIAL` of the minimum interval, with noisy
   loads it takes as long as it needs.
4. It is dropped when the minimum gain has become unlikely, or when it has not been decided for
   `EXPIRY`.

Each rebalance that is soon followed by another one doubles the pause before the next (cool-down).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Self

from balanced_source.api import Position, RebalancePolicy, SplitId
from balanced_source.assigners._contract import Placement, SplitAssigner, place
from balanced_source.assigners._noise import NoiseHistory
from balanced_source.assigners._weights import WeightTable, lower_bound

LOOKS: Final = 10
"""Looks at the imbalance per minimum interval; it is computed no more often."""

TRIAL: Final = 0.5
"""Shortest trial of a proposal, and length of a block of the noise history, in minimum intervals.
"""

CONFIDENCE: Final = 3.0
"""Standard errors by which the mean gain has to exceed the minimum gain."""

CAUTIOUS: Final = 5.0
"""The same during a short trial, and for moves that return a split to a reader it left within
`REMEMBERED`."""

LONG_TRIAL: Final = 2.0
"""Trials below this are short, in minimum intervals: a few bursts can look like anything."""

ONSET: Final = 2
"""Blocks before a proposal in which a lasting change may have begun."""

DOUBT: Final = 1.0
"""A proposal is dropped when its mean gain is this many standard errors below the minimum gain."""

EXPIRY: Final = 24.0
"""Longest trial, in minimum intervals: after it the assigner proposes again, with newer loads."""

REMEMBERED: Final = 144.0
"""For how long former readers are remembered, in minimum intervals."""

CALM: Final = 4
"""Pauses without imbalance after which the next pause is short again."""

STEP_DELAY: Final = 1.1
"""By how much the pause grows after a step of a larger rebalance."""

LONGEST: Final = 64
"""Longest pause, in minimum intervals."""


def imbalance(
    owners: Mapping[SplitId, int], weights: Mapping[SplitId, float], parallelism: int
) -> float:
    """Return the largest load as a multiple of the smallest largest load that is possible.

    1.0 is best.
    """
    if not owners:
        return 1.0
    table = WeightTable.of(list(owners), weights)
    return max(table.loads(owners.values(), parallelism)) / lower_bound(table.weights, parallelism)


def minimum_gain(policy: RebalancePolicy) -> float:
    """Return by how much a rebalance has to lower the imbalance."""
    return (policy.max_imbalance - 1) / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """A rebalance that has passed its trial.

    Attributes:
        moves: split → new owner.
        before: imbalance with today's owners.
        after: imbalance after the moves.
    """

    moves: Mapping[SplitId, int]
    before: float
    after: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """Moves on trial.

    Attributes:
        moves: split → new owner.
        owners: all owners before the moves. The proposal is void when they change for another
            reason.
        since: start of the trial, in seconds.
        total: sum of the gains measured since then.
        looks: number of these gains.
        gains: the same gains, as a history of their noise.
    """

    moves: Mapping[SplitId, int]
    owners: Mapping[SplitId, int]
    since: float
    gains: NoiseHistory
    total: float = 0.0
    looks: int = 0

    @property
    def mean(self) -> float:
        """Mean gain since the start of the trial."""
        return self.total / self.looks if self.looks else 0.0

    def measured(self, gain: float, now: float) -> Self:
        """Return the proposal with a further measurement."""
        gains = self.gains.observe(gain, now)
        return replace(self, gains=gains, total=self.total + gain, looks=self.looks + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftWatch:
    """Decides when a drift is worth a rebalance. Immutable; times in seconds.

    Attributes:
        changed_at: when splits moved last, or when the watch began.
        looked_at: last look.
        positions: positions of the splits at that time.
        proposed_at: when the assigner was last asked for a proposal.
        pause: from `changed_at` to the next rebalance, at least; 0 stands for the policy's minimum
            interval.
        noise: history of the imbalance, without the time of trials that ended with a rebalance.
        proposal: moves on trial, if any.
        former: split → (reader that it left, when), of the rebalances by drift within `REMEMBERED`.
    """

    changed_at: float
    looked_at: float = -float("inf")
    positions: Mapping[SplitId, Position] = field(default_factory=dict)
    proposed_at: float = -float("inf")
    pause: float = 0.0
    noise: NoiseHistory | None = None
    proposal: Proposal | None = None
    former: Mapping[SplitId, tuple[int, float]] = field(default_factory=dict)

    def is_look_due(self, policy: RebalancePolicy, now: float) -> bool:
        """Return whether `look` should be called now."""
        return now - self.looked_at >= policy.min_interval / LOOKS

    def look(
        self,
        policy: RebalancePolicy,
        assigner: SplitAssigner,
        placement: Placement,
        *,
        positions: Mapping[SplitId, Position],
        now: float,
    ) -> tuple["DriftWatch", Drift | None]:
        """Return the watch after a look at the loads, and the rebalance that is due now, if any.

        Args:
            policy: what the user allows.
            assigner: proposes moves.
            placement: today's owners and loads averaged over minutes; nothing is pending, splits
                may move.
            positions: newest positions of the splits. Their growth since the last look is the load
                by which a proposal is judged: an average would let a short peak look like a change
                for minutes.
            now: seconds.
        """
        # An average would let a short peak look like a change for minutes.
        recent = replace(placement, weights=self._recent(assigner, placement, positions))
        watch = replace(self._still_valid(placement), looked_at=now, positions=positions)
        # The proposal is frozen while it is on trial: loads that suggest moves are no evidence for
        # them.
        if watch.proposal is not None:
            return _tried(watch, policy, recent, now)
        before = _imbalance(placement)
        watch = _observed(watch, policy, before, _imbalance(recent), now)
        if before > policy.max_imbalance and _may_propose(watch, policy, now):
            return _proposed(watch, policy, assigner, placement, now), None
        return watch, None

    def moved(self, now: float) -> "DriftWatch":
        """Return the watch after splits moved for another reason: loads must settle first."""
        # Means before and after moves differ because of the moves, so they are not compared.
        noise = self.noise.broken() if self.noise is not None else None
        return replace(self, changed_at=now, proposal=None, noise=noise)

    def _recent(
        self, assigner: SplitAssigner, placement: Placement, positions: Mapping[SplitId, Position]
    ) -> Mapping[SplitId, float]:
        """Growth of each position since the last look; the average where that is unknown."""
        if not assigner.uses_weights:
            return {}
        grown: dict[SplitId, float] = {}
        for split_id, position in positions.items():
            before = self.positions.get(split_id)
            # A position that went back says nothing about the load.
            if before is not None and position is not None and position >= before:
                grown[split_id] = float(position - before)
        # Nothing has grown since: the source is idle, or no report has come.
        return grown if any(grown.values()) else placement.weights

    def _still_valid(self, placement: Placement) -> "DriftWatch":
        """The watch without a proposal for other owners than today's: splits came or went."""
        # A split that was removed meanwhile must not be moved.
        if self.proposal is None or self.proposal.owners == placement.owners:
            return self
        return replace(
            self, proposal=None, noise=self.noise.broken() if self.noise is not None else None
        )


def _observed(
    watch: DriftWatch, policy: RebalancePolicy, average: float, recent: float, now: float
) -> DriftWatch:
    noise = watch.noise or NoiseHistory(block=TRIAL * policy.min_interval)
    pause = max(watch.pause, policy.min_interval)
    # A long pause was for loads that change again and again; after calm times it starts short.
    is_calm = average <= policy.max_imbalance and now - watch.changed_at >= (1 + CALM) * pause
    return replace(watch, noise=noise.observe(recent, now), pause=0.0 if is_calm else watch.pause)


def _may_propose(watch: DriftWatch, policy: RebalancePolicy, now: float) -> bool:
    """The trial may run during the last part of the pause."""
    trial = TRIAL * policy.min_interval
    # The trial takes that long, so it may end when the pause does.
    is_settled = now - watch.changed_at >= max(watch.pause, policy.min_interval) - trial
    return is_settled and now - watch.proposed_at >= 2 * policy.min_interval / LOOKS


def _proposed(
    watch: DriftWatch,
    policy: RebalancePolicy,
    assigner: SplitAssigner,
    placement: Placement,
    now: float,
) -> DriftWatch:
    moves = place(assigner, placement)
    watch = replace(watch, proposed_at=now)
    after = _imbalance(replace(placement, owners={**placement.owners, **moves}))
    # Even by the loads that suggest it, it would gain too little.
    if _imbalance(placement) - after < minimum_gain(policy):
        return watch
    gains = NoiseHistory(block=TRIAL * policy.min_interval)
    return replace(
        watch, proposal=Proposal(moves=moves, owners=placement.owners, since=now, gains=gains)
    )


def _tried(
    watch: DriftWatch, policy: RebalancePolicy, recent: Placement, now: float
) -> tuple[DriftWatch, Drift | None]:
    """Measure the proposal once more, and decide."""
    assert watch.proposal is not None  # noqa: S101 - the caller has looked
    before = _imbalance(recent)
    after = _imbalance(replace(recent, owners={**recent.owners, **watch.proposal.moves}))
    proposal = watch.proposal.measured(before - after, now)
    watch, duration = replace(watch, proposal=proposal), now - proposal.since
    # A few looks say nothing: noise of ten minutes looks like a change when it is observed for
    # five.
    if duration < TRIAL * policy.min_interval:
        return watch, None
    error = _error(watch, proposal, duration)
    surplus = proposal.mean - minimum_gain(policy)
    if surplus > _confidence(watch, policy, proposal, now) * error:
        drift = Drift(moves=proposal.moves, before=before, after=after)
        return _followed(watch, policy, recent.owners, drift, now), drift
    # Undecided for too long, it is proposed again with newer loads.
    if surplus < -DOUBT * error or duration > EXPIRY * policy.min_interval:
        return _dropped(watch), None
    return watch, None


def _error(watch: DriftWatch, proposal: Proposal, duration: float) -> float:
    """Standard error of the mean gain.

    By what the imbalance used to do, and by the gains themselves.

    The blocks just before the proposal are left out: they contain the change itself.
    """
    noise = proposal.gains
    if watch.noise is not None:
        noise = watch.noise.without_newest(ONSET).joined(proposal.gains)
    return noise.error_of_mean(duration)


def _confidence(
    watch: DriftWatch, policy: RebalancePolicy, proposal: Proposal, now: float
) -> float:
    # A split that goes back is what following noise looks like, so it needs more evidence.
    returns = any(
        s in watch.former and watch.former[s][0] == owner for s, owner in proposal.moves.items()
    )
    is_short = now - proposal.since < LONG_TRIAL * policy.min_interval
    return CAUTIOUS if returns or is_short else CONFIDENCE


def _followed(
    watch: DriftWatch,
    policy: RebalancePolicy,
    owners: Mapping[SplitId, int],
    drift: Drift,
    now: float,
) -> DriftWatch:
    """The watch after a rebalance. One that is a step of several hardly delays the next."""
    is_partial = drift.after > policy.max_imbalance
    # A limited rebalance continues in steps, and the next step is not a sign of noise.
    longer = (STEP_DELAY if is_partial else 2) * max(watch.pause, policy.min_interval)
    pause = min(longer, LONGEST * policy.min_interval)
    remembered = now - REMEMBERED * policy.min_interval
    # Forgotten in time: after hours a split may have a reason to go back.
    former = {s: left for s, left in watch.former.items() if left[1] >= remembered}
    former |= {s: (owners[s], now) for s in drift.moves}
    return replace(watch.moved(now), pause=pause, former=former)


def _dropped(watch: DriftWatch) -> DriftWatch:
    """The watch after a proposal that noise had suggested: its trial is part of the history."""
    assert watch.proposal is not None  # noqa: S101 - the caller has looked
    # Without it the history would lack just the times in which noise was large.
    noise = watch.noise.joined(watch.proposal.gains) if watch.noise is not None else None
    return replace(watch, proposal=None, noise=noise)


def _imbalance(placement: Placement) -> float:
    return imbalance(placement.owners, placement.weights, placement.parallelism)
