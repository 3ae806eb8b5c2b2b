"""C's allocator in a process that lives long: a worker, a planning process, the operator.

glibc gives each thread a heap ("arena") of its own, up to eight per core. What one of a client
library's threads has allocated another frees, and what is free in one arena is of no use to the
others; so a worker grew with every consumer that it opened, to three times its size after eight
queries. With the main arena alone it stays smaller, and reads as fast.

What is freed stays with the allocator, which keeps the pages between two living blocks for good. A
process that lives for days would grow by tens of MiB in its first hours. So free pages are given
back to the system once in a while.

Tasks import this, so it imports little.
"""

import os
import sys
import threading
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, Final

_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8
"""Numbers of settings in glibc's `malloc.h`."""

CHOSEN: Final = "MALLOC_ARENA_MAX"
"""glibc's own environment variable: who has set it has chosen, and is left alone."""

THRESHOLDS: Final = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_")
"""Further variables of that kind."""

KEPT: Final = 16 * 1024 * 1024
"""Free bytes at the end of the heap that stay with the process."""

LARGEST: Final = 32 * 1024 * 1024
"""Bytes of blocks that come from the heap; glibc takes no more. Larger ones are mapped."""

EVERY: Final = 60.0
"""Seconds between two times that pages are given back. One takes a few milliseconds per 100 MiB,
and work fills the pages again."""


def trim() -> None:
    """Give back all pages that the allocator has free; nothing where it cannot do that."""
    if (malloc_trim := _of_c("malloc_trim")) is not None:
        malloc_trim(0)


@cache
def keep_small() -> None:
    """Share one heap, and give back free pages from now on; once per process.

    Only for a process that is ours alone: in the process of a user the user chooses.
    """
    share_one_heap()
    stop = threading.Event()  # never set: it ends with the process
    threading.Thread(target=give_back, args=(stop, EVERY), name="bsrc-heap", daemon=True).start()


def give_back(stop: threading.Event, every: float, give: Callable[[], object] = trim) -> None:
    """Give back free pages every so many seconds until told to stop."""
    while not stop.wait(every):
        give()


@cache
def share_one_heap() -> bool:
    """Have threads that come from now on use the main arena; once per process.

    Returns:
        Whether that was done: not where the user has chosen, nor with another C library.
    """
    return _set((_M_ARENA_MAX, 1), unless=(CHOSEN,))


@cache
def reuse_pages() -> bool:
    """Have blocks of some MiB that come and go use the same pages again; once per process.

    By itself the C library gives such pages back as soon as two of the blocks are free. Each page
    then costs a fault when the next block is written, which is dearer than copying it: a reader of
    text took twice as much time.

    Returns:
        Whether that was done: not where the user has chosen, nor with another C library.
    """
    return _set((_M_MMAP_THRESHOLD, LARGEST), (_M_TRIM_THRESHOLD, KEPT), unless=THRESHOLDS)


def _set(*settings: tuple[int, int], unless: Iterable[str]) -> bool:
    """Change settings of glibc, unless one of some variables is set; whether that was done."""
    if any(name in os.environ for name in unless) or not sys.platform.startswith("linux"):
        return False
    mallopt = _of_c("mallopt")
    return mallopt is not None and all(mallopt(*setting) == 1 for setting in settings)


@cache
def _of_c(name: str) -> Any:
    """A function of the C library; None if it has no such one."""
    import ctypes

    return getattr(ctypes.CDLL(None), name, None)
