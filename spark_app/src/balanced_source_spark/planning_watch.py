"""Whether Spark still plans micro-batches: a query that hangs reports on, and reads nothing."""

import time
from collections.abc import Callable
from typing import Final

from balanced_source.api import Problem
from balanced_source.reasons import Reason

KEY: Final = ("planning",)
"""Of the problem that no micro-batch begins."""

PATIENCE: Final = 300.0
"""Seconds without a new micro-batch after which people are told, unless such pauses are usual."""

USUAL: Final = 3.0
"""A pause may be so many times as long as the longest one before: triggers and sinks differ."""

KNOWN_FROM: Final = 3
"""Calls after which usual pauses are known: of a trigger of an hour, the first two say nothing."""


class PlanningWatch:
    """Watches one query. Used under the lock of its host.

    Args:
        clock: seconds, never set back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._calls = 0
        self._last = 0.0
        self._longest = 0.0

    def called(self) -> None:
        """Note that Spark has asked for the next micro-batch."""
        now = self._clock()
        if self._calls:
            self._longest = max(self._longest, now - self._last)
        self._last = now
        self._calls += 1

    def problem(self) -> Problem | None:
        """Return what is wrong if Spark has not asked for very long; None if it may be usual."""
        patience = max(PATIENCE, USUAL * self._longest)
        if self._calls < KNOWN_FROM or self._clock() - self._last < patience:
            return None
        message = (
            f"Spark has begun no micro-batch for {patience:.0f} s (before, at most"
            f" {self._longest:.0f} s passed between two), so nothing new is read: a micro-batch"
            " hangs, such as in a sink that does not answer or without free executors, or the"
            " driver's JVM stands still. See the driver's log, and its page of running tasks. If"
            " it hangs, delete the driver's pod: the next one continues from the checkpoint"
        )
        return Problem(reason=Reason.QUERY_STALLED, message=message)
