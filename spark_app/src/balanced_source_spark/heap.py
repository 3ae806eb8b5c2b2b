"""What a worker process does about memory: C's allocator and Python's collector expect short lives.

glibc gives each thread a heap ("arena") of its own, up to eight per core. What one of a client
library's threads has allocated another frees, and what is free in one arena is of no use to the
others; so a worker grew with every consumer that it opened, to three times its size after eight
queries. With the main arena alone it stays smaller, and reads as fast.

What is freed stays with the allocator, which keeps the pages between two living blocks for good. A
worker of Spark lives for days, and would grow by tens of MiB in its first hours. So free pages are
given back to the system once in a while.

Spark collects garbage after each task, and the collector then looks at every object: at those of
all modules too, which stay. That was half of what a small task took. So the objects that are in use
at the end of the first task are set aside.

Tasks import this, so it imports little.
"""

import gc
import os
import sys
import threading
import time
from collections.abc import Callable
from functools import cache
from typing import Any, Final

_M_ARENA_MAX: Final = -8
"""Number of the setting in glibc's `malloc.h`."""

CHOSEN: Final = "MALLOC_ARENA_MAX"
"""glibc's own environment variable: who has set it has chosen, and is left alone."""

EVERY: Final = 60.0
"""Seconds between two times. One takes a few milliseconds per 100 MiB, and reading fills the pages
again; and as long as a collection of everything."""


class WorkerMemory:
    """Takes care of it once in a while. Thread-safe.

    Args:
        settle: sets aside what stays, for the collector.
        trim: gives back what it can.
        every: seconds between two times.
        clock: seconds, monotonic.
    """

    def __init__(
        self,
        settle: Callable[[], object],
        trim: Callable[[], object],
        *,
        every: float = EVERY,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settle = settle
        self._trim = trim
        self._every = every
        self._clock = clock
        self._lock = threading.Lock()
        self._due: float | None = None

    def note_task(self) -> None:
        """A task has ended. The first one has loaded modules, and has freed little."""
        now = self._clock()
        with self._lock:
            is_first = self._due is None
            if self._due is not None and now < self._due:
                return
            self._due = now + self._every
        self._settle()
        if not is_first:
            self._trim()


def settle() -> None:
    """Collect all garbage, and spare the collector what is left until this is called again."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()


def trim() -> None:
    """Give back all pages that the allocator has free; nothing where it cannot do that."""
    if (malloc_trim := _of_c("malloc_trim")) is not None:
        malloc_trim(0)


worker_memory: Final = WorkerMemory(settle, trim)
"""Of this process."""


@cache
def share_one_heap() -> bool:
    """Have threads that come from now on use the main arena; once per process.

    Returns:
        Whether that was done: not where the user has chosen, nor with another C library.
    """
    if CHOSEN in os.environ or not sys.platform.startswith("linux"):
        return False
    mallopt = _of_c("mallopt")
    return mallopt is not None and mallopt(_M_ARENA_MAX, 1) == 1


@cache
def _of_c(name: str) -> Any:
    """A function of the C library; None if it has no such one."""
    import ctypes

    return getattr(ctypes.CDLL(None), name, None)
