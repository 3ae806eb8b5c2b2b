"""What the user asks of the autoscaler."""

from dataclasses import dataclass
from typing import Final

LONGEST_NORMAL_BATCH: Final = 5.0
"""Seconds of load that may wait for the next micro-batch without being a backlog, whatever the
trigger is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The settings of `spec.autoscaling`, and what of the source they depend on.

    Attributes:
        min_readers: fewest readers.
        max_readers: most readers.
        target_utilization: share of its capacity that the busiest reader should use, 0 to 1.
        max_lag: seconds by which readers may be behind before more readers are added to catch up.
        scale_down_delay: seconds for which fewer readers must suffice before there are fewer.
        trigger: seconds between the starts of two micro-batches.
        shares_splits: whether several readers may read ranges of one split.
        follows_load: whether the assigner weighs splits by their load instead of counting them.
        is_manual: whether splits move only when the user asks for it, so that readers that are
            added get none.
    """

    min_readers: int
    max_readers: int
    target_utilization: float = 0.8
    max_lag: float = 60.0
    scale_down_delay: float = 300.0
    trigger: float = 0.0
    shares_splits: bool = False
    follows_load: bool = False
    is_manual: bool = False

    @property
    def normal_wait(self) -> float:
        """Seconds of load that are normally unread when a micro-batch begins."""
        return max(LONGEST_NORMAL_BATCH, 3 * self.trigger)

    @property
    def patience(self) -> float:
        """Seconds for which fewer readers must suffice.

        At least twice the load that may normally wait: with a long trigger interval, a backlog
        shows late that too many readers were taken away.
        """
        return max(self.scale_down_delay, 6 * self.trigger)

    def bounded(self, readers: int) -> int:
        """Return the nearest number of readers that is allowed."""
        return max(self.min_readers, min(self.max_readers, readers))
