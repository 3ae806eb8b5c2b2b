"""One heap for all threads of a worker.

glibc gives each thread a heap ("arena") of its own, up to eight per core. What one of librdkafka's
threads has allocated another frees, and what is free in one arena is of no use to the others; so a
worker grew with every consumer that it opened, to three times its size after eight queries. With
the main arena alone it stays as it is, and reads as fast.
"""

import ctypes
import os
import sys
from functools import cache
from typing import Final

_M_ARENA_MAX: Final = -8
"""Number of the setting in glibc's `malloc.h`."""

CHOSEN: Final = "MALLOC_ARENA_MAX"
"""glibc's own environment variable: who has set it has chosen, and is left alone."""


@cache
def share_one_heap() -> bool:
    """Have threads that come from now on use the main arena; once per process.

    Returns:
        Whether that was done: not where the user has chosen, nor with another C library.
    """
    if CHOSEN in os.environ or not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and mallopt(_M_ARENA_MAX, 1) == 1
