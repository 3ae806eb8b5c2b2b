"""An event loop whose time passes at once: what sleeps for an hour wakes up now, in the right order."""

import asyncio
import selectors
import types
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

T = TypeVar("T")

EPOCH: Final = 1_750_000_000.0
"""Seconds since the epoch at which every loop begins."""


class VirtualLoop(asyncio.SelectorEventLoop):
    """Waiting for nothing at all is an error: the test would hang."""

    def __init__(self) -> None:
        self.now = 0.0
        super().__init__(_InstantSelector(self))

    def time(self) -> float:
        return self.now


class _InstantSelector(selectors.SelectSelector):
    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise RuntimeError("everybody waits, and nothing is due")
        self._loop.now += max(0.0, timeout)
        return super().select(0)


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run to the end."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)


def clock() -> float:
    """Seconds since the epoch on the running loop."""
    return EPOCH + asyncio.get_running_loop().time()


def time_module() -> types.SimpleNamespace:
    """Stands in for the module `time` in the code under test."""
    return types.SimpleNamespace(time=clock, monotonic=clock)
