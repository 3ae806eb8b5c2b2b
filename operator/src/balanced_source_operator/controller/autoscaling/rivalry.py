"""Whether something else changes the number of readers, against the autoscaler."""

from dataclasses import dataclass, replace
from typing import Final

from balanced_source_operator.controller.autoscaling.policy import Policy

FIGHT: Final = 3
"""Changes undone within the window that are a fight; a person changes a number once or twice."""

SHORTEST_WINDOW: Final = 600.0
"""Seconds for which undone changes count, at least."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rivalry:
    """Changes by others that the autoscaler has undone.

    Each of its own changes is a compare-and-swap. If one begins at another number than the one
    before has ended at, something else has changed the number in between.

    Attributes:
        written: the number that the autoscaler wrote last; None before the first.
        found: the number that something else made of it, the newest one; None if there was none.
        undone: times of undone changes, in seconds, the newest last.
    """

    written: int | None = None
    found: int | None = None
    undone: tuple[float, ...] = ()

    def wrote(self, now: float, *, before: int, after: int) -> "Rivalry":
        """Return the state after a change from one number to another."""
        if self.written in (None, before):
            return replace(self, written=after)
        return Rivalry(written=after, found=before, undone=(*self.undone, now)[-FIGHT:])

    def is_fight(self, policy: Policy, now: float) -> bool:
        """Whether changes are undone again and again."""
        # With a long delay the autoscaler undoes an increase rarely.
        window = max(SHORTEST_WINDOW, 4 * policy.scale_down_delay)
        return len(self.undone) == FIGHT and now - self.undone[0] <= window
