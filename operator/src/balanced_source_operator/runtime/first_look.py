"""Whether an operator that has begun to serve a source has heard everything at least once."""

from typing import Any, Final

from balanced_source.coordinator import SourceCoordinator

LONGEST: Final = 60.0
"""Seconds for which the first look may last. Not every enumerator can tell when it is over."""


class FirstLook:
    """Of one source; begins again with each coordinator, because that knows nothing at first."""

    def __init__(self) -> None:
        self._coordinator: SourceCoordinator[Any, Any] | None = None
        self._until = float("inf")

    def lasts(
        self, coordinator: SourceCoordinator[Any, Any] | None, *, has_problems: bool, now: float
    ) -> bool:
        """Return whether the answers that are still missing may tell that something is wrong.

        Args:
            coordinator: of the source; None while there is none.
            has_problems: whether its enumerator has found any.
            now: seconds, by a clock that only goes forward.
        """
        if coordinator is None:
            return True
        if coordinator is not self._coordinator:
            self._coordinator, self._until = coordinator, now + LONGEST
        if has_problems or coordinator.enumerator.is_settled():
            self._until = now
        return now < self._until

    def pause(self, now: float) -> float | None:
        """Return the seconds until it is over in any case; None if it is over, or has not begun."""
        return self._until - now if now < self._until < float("inf") else None
