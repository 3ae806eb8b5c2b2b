"""Gives memory that a worker process has freed back to the system.

Client libraries fetch in threads of their own. What those free stays with glibc's allocator, which
keeps the pages between two living blocks for good. A worker of Spark lives for days, and would grow
by tens of MiB in its first hours.

Tasks import this, so it imports little.
"""

import threading
import time
from collections.abc import Callable
from functools import cache
from typing import Any, Final

EVERY: Final = 60.0
"""Seconds between two times. One takes a few milliseconds per 100 MiB, and reading fills the pages
again."""


class FreedMemory:
    """Gives it back once in a while. Thread-safe.

    Args:
        trim: gives back what it can.
        every: seconds between two times; a process that lives for a shorter time never does it.
        clock: seconds, monotonic.
    """

    def __init__(
        self,
        trim: Callable[[], object],
        *,
        every: float = EVERY,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._trim = trim
        self._every = every
        self._clock = clock
        self._lock = threading.Lock()
        self._due: float | None = None

    def note_task(self) -> None:
        """A task has ended."""
        now = self._clock()
        with self._lock:
            is_due = self._due is not None and now >= self._due
            if is_due or self._due is None:
                self._due = now + self._every
        if is_due:
            self._trim()


def trim() -> None:
    """Give back all pages that the allocator of C has free; nothing where it cannot do that."""
    if (found := _malloc_trim()) is not None:
        found(0)


@cache
def _malloc_trim() -> Any:
    """The function of glibc; None with another library."""
    import ctypes

    return getattr(ctypes.CDLL(None), "malloc_trim", None)


freed_memory: Final = FreedMemory(trim)
"""Of this process."""
