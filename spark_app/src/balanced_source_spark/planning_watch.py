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
"""A pause may be so many times as long as is usual: triggers and sinks differ."""

KNOWN_FROM: Final = 3
"""Calls after which pauses without records are known: of a trigger of an hour, the first two say
nothing."""

FIXED: Final = 1000
"""Records that take as long as what each micro-batch costs. So many are added to those that are
read, or the pace of a micro-batch with one record would excuse any other one."""


class PlanningWatch:
    """Watches one query. Used under the lock of its host.

    A micro-batch may take as long as its records do at the slowest pace so far: one that catches up
    may read for hours, and the next one hangs after minutes. How long the first one takes is not
    known at all.

    Args:
        clock: seconds, never set back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._calls = 0
        self._last = clock()
        self._longest = 0.0
        self._pace: float | None = None
        self._running: int | None = None

    def called(self) -> None:
        """Note that Spark has asked for the next micro-batch, so that the last one has ended."""
        now = self._clock()
        pause = now - self._last
        if self._running is not None:
            self._pace = max(self._pace or 0.0, pause / (self._running + FIXED))
        elif self._calls:
            self._longest = max(self._longest, pause)
        self._running, self._last = None, now
        self._calls += 1

    def planned(self, records: int) -> None:
        """Note that a micro-batch begins.

        Args:
            records: that it reads, in the unit of the source's positions; 0 if that is not known.
        """
        self._running = records

    def problem(self) -> Problem | None:
        """Return what is wrong if Spark has not asked for very long; None if it may be usual."""
        patience = self._patience()
        if patience is None or self._clock() - self._last < patience:
            return None
        message = (
            f"Spark has begun no micro-batch for {patience:.0f} s, longer than {self._usual()}, so"
            " nothing new is read: a micro-batch hangs, such as in a sink that does not answer or"
            " without free executors, or the driver's JVM stands still. See the driver's log, and"
            " its page of running tasks. If it hangs, delete the driver's pod: the next one"
            " continues from the checkpoint"
        )
        return Problem(reason=Reason.QUERY_STALLED, message=message)

    def _patience(self) -> float | None:
        """Return the seconds after which a pause is not usual any more; None while not known."""
        if self._running is None:
            return max(PATIENCE, USUAL * self._longest) if self._calls >= KNOWN_FROM else None
        if self._pace is None:
            return None
        return max(PATIENCE, USUAL * max(self._longest, self._pace * (self._running + FIXED)))

    def _usual(self) -> str:
        if self._running is None:
            return "any pause before"
        return "a micro-batch of this size has ever taken"
