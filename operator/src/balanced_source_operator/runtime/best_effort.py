"""Writes that only keep numbers current, such as the lag in a status.

There may be thousands a minute. A slow API server must not make anything wait for them that a user
waits for, so only a few are made at once, and the others are left for later.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

AT_ONCE: Final = 4
"""Writes at once, of all sources together: an eighth of the connections to the API server."""


class BestEffort:
    """Used on one event loop."""

    def __init__(self) -> None:
        self._running = 0

    @property
    def is_free(self) -> bool:
        """Whether one more write may begin now."""
        return self._running < AT_ONCE

    @contextmanager
    def write(self) -> Iterator[None]:
        """Count a write while it lasts."""
        self._running += 1
        try:
            yield
        finally:
            self._running -= 1
