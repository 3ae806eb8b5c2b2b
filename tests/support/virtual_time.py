"""Time that passes at once, also for code that looks at the clock.

What sleeps for an hour wakes up now, in order.
"""

import asyncio
import types
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

import looptime

T = TypeVar("T")

EPOCH: Final = 1_750_000_000.0
"""Seconds since the epoch at which every loop begins."""


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run to the end, on a loop of its own."""
    with asyncio.Runner(loop_factory=lambda: looptime.new_event_loop(start=0.0)) as runner:
        return runner.run(main)


def is_running() -> bool:
    """Whether the time of the running loop is virtual."""
    return bool(getattr(asyncio.get_running_loop(), "looptime_on", False))


def clock() -> float:
    """Seconds since the epoch on the running loop."""
    return EPOCH + asyncio.get_running_loop().time()


def time_module() -> types.SimpleNamespace:
    """Stands in for the module `time` in the code under test."""
    return types.SimpleNamespace(time=clock, monotonic=clock)
