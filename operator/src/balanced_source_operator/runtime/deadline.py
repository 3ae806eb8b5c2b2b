"""How long something has been waited for."""

from collections.abc import Callable


class Deadline:
    """Counts from the first turn that waits to the last, without a turn between them that does not.

    Args:
        seconds: after which it is over.
        clock: monotonic seconds.
    """

    def __init__(self, seconds: float, *, clock: Callable[[], float]) -> None:
        self._seconds = seconds
        self._clock = clock
        self._since: float | None = None

    def note(self, *, waits: bool) -> None:
        """This turn waits, or does not."""
        if not waits:
            self._since = None
        elif self._since is None:
            self._since = self._clock()

    def is_over(self) -> bool:
        """Whether waiting has taken too long."""
        return self._since is not None and self._clock() - self._since >= self._seconds
