"""Imbalance that comes by itself: how large it is, and when it is worth a rebalance.

Moving splits because of a measurement can go wrong in one way above all: that noise moves them to and fro for ever.
Four things prevent it. Loads are averaged over minutes before they come here (the coordinator's load tracker). A
rebalance begins above `max_imbalance` and ends near 1, so that the way back up is long (hysteresis). The imbalance
must last, and the rebalance must take away half of what is too much (minimum gain). And each rebalance that is
followed by another one doubles the pause to the next (cool-down), so that in any time t noise alone can cause no more
than about log t of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Self

from balanced_source.api import RebalancePolicy, SplitId
from balanced_source.assigners._contract import Placement, SplitAssigner, place
from balanced_source.assigners._weights import WeightTable, lower_bound

LASTING: Final = 0.5
"""Share of the minimum interval for which the imbalance must last."""

LOOKS: Final = 10
"""Looks at the imbalance per minimum interval; it is computed no more often."""

CALM: Final = 4
"""Pauses without imbalance after which the next pause is short again."""

STEP_DELAY: Final = 1.1
"""By how much the pause grows after a step of a larger rebalance."""

LONGEST: Final = 64
"""The longest pause, in minimum intervals."""


def imbalance(owners: Mapping[SplitId, int], weights: Mapping[SplitId, float], parallelism: int) -> float:
    """Largest load as a multiple of the smallest largest load that these splits permit; 1.0 is best."""
    if not owners:
        return 1.0
    table = WeightTable.of(list(owners), weights)
    return max(table.loads(owners.values(), parallelism)) / lower_bound(table.weights, parallelism)


def gain(assigner: SplitAssigner, placement: Placement) -> float:
    """By how much the answer to `placement` lowers the imbalance."""
    weights = placement.weights if assigner.uses_weights else {}
    after = {**placement.owners, **place(assigner, placement)}
    n = placement.parallelism
    return imbalance(placement.owners, weights, n) - imbalance(after, weights, n)


def minimum_gain(policy: RebalancePolicy) -> float:
    """What a rebalance must lower the imbalance by."""
    return (policy.max_imbalance - 1) / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftWatch:
    """Decides when a drift is worth a rebalance. Immutable; times in seconds.

    Attributes:
        changed_at: when splits moved last, or when the watch began.
        looked_at: last look.
        over_since: since when the imbalance is too large; None if it is not.
        pause: from `changed_at` to the next rebalance, at least; 0 stands for the policy's minimum interval.
    """

    changed_at: float
    looked_at: float = -float("inf")
    over_since: float | None = None
    pause: float = 0.0

    def is_look_due(self, policy: RebalancePolicy, now: float) -> bool:
        """Whether `look` should be called now."""
        return now - self.looked_at >= policy.min_interval / LOOKS

    def look(self, policy: RebalancePolicy, imbalance_now: float, now: float) -> tuple[Self, bool]:
        """The watch after a look, and whether a rebalance is worth trying."""
        pause = max(self.pause, policy.min_interval)
        if imbalance_now <= policy.max_imbalance:
            is_calm = now - self.changed_at >= (1 + CALM) * pause
            return replace(self, looked_at=now, over_since=None, pause=0.0 if is_calm else self.pause), False
        since = now if self.over_since is None else self.over_since
        is_due = now - self.changed_at >= pause and now - since >= LASTING * policy.min_interval
        return replace(self, looked_at=now, over_since=since), is_due

    def tried(self, policy: RebalancePolicy, now: float, *, is_partial: bool = False) -> Self:
        """The watch after a rebalance, or after one that would not have gained enough.

        One that is known to be only a step of several (`RebalancePolicy.max_moves`) hardly delays the next.
        """
        longer = (STEP_DELAY if is_partial else 2) * max(self.pause, policy.min_interval)
        return replace(self, changed_at=now, over_since=None, pause=min(longer, LONGEST * policy.min_interval))

    def moved(self, now: float) -> Self:
        """The watch after splits moved for another reason: loads must settle first."""
        return replace(self, changed_at=now, over_since=None)
