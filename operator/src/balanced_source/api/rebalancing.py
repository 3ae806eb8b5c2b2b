"""When splits may move: what the user allows."""

import enum
from dataclasses import dataclass
from typing import Final


class RebalanceCause(enum.Enum):
    """Why splits may move now; nothing moves for any other reason."""

    RESCALE = "Rescale"
    RECOVERY = "Recovery"
    REQUESTED = "Requested"
    DRIFT = "Drift"


class RebalanceMode(enum.Enum):
    """Which causes count.

    MANUAL: only what the user asks for; DRIFT: also imbalance that came by itself.
    """

    ON_RESCALE = "OnRescale"
    DRIFT = "Drift"
    MANUAL = "Manual"


_CAUSES: Final = {
    RebalanceMode.MANUAL: frozenset({RebalanceCause.REQUESTED}),
    RebalanceMode.ON_RESCALE: frozenset(
        {RebalanceCause.REQUESTED, RebalanceCause.RESCALE, RebalanceCause.RECOVERY}
    ),
    RebalanceMode.DRIFT: frozenset(RebalanceCause),
}

_UNLIMITED: Final = frozenset({RebalanceCause.RESCALE, RebalanceCause.RECOVERY})


@dataclass(frozen=True, slots=True, kw_only=True)
class RebalancePolicy:
    """What the user allows.

    Attributes:
        mode: which causes count.
        max_imbalance: mode DRIFT: what the largest load may be, as a multiple of the smallest
            largest load that the splits permit; > 1.
        min_interval: mode DRIFT: seconds between two rebalances, at least.
        max_moves: splits that one rebalance may move; None: any number. A rescale and a recovery
            move what they must.
    """

    mode: RebalanceMode = RebalanceMode.ON_RESCALE
    max_imbalance: float = 1.2
    min_interval: float = 600.0
    max_moves: int | None = None

    def allows(self, cause: RebalanceCause) -> bool:
        """Whether splits may move for this cause."""
        return cause in _CAUSES[self.mode]

    def limit(self, cause: RebalanceCause) -> int | None:
        """How many splits may move for this cause; None: any number."""
        return None if cause in _UNLIMITED else self.max_moves
