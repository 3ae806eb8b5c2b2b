"""Whether Spark still plans micro-batches: a query that hangs reports on, and reads nothing."""

import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Final

from balanced_source.api import Problem
from balanced_source.documents.report import (
    LATE_SECONDS,
    MICRO_BATCH_SECONDS,
    MICRO_BATCHES,
    POSITIONS_AT,
)
from balanced_source.reasons import Reason

KEY: Final = ("planning",)
"""Of the problem that no micro-batch begins."""

PATIENCE: Final = 300.0
"""Seconds without a new micro-batch after which people are told, unless such pauses are usual."""

USUAL: Final = 3.0
"""A pause may be so many times as long as is usual: triggers and sinks differ."""

KNOWN_FROM: Final = 3
"""Calls, and micro-batches, after which pauses are known: of a trigger of an hour, the first two
say nothing."""

RECENT: Final = 200
"""Pauses that are remembered: one micro-batch in a hundred may take long, such as one that compacts
a table, but hours of catching up are forgotten after a while."""

LATE: Final = 1.1
"""Time of a micro-batch, as a multiple of the trigger interval, from which none waits for it."""

SHORT: Final = 1.0
"""A pause without records of fewer seconds is one of an idle query, which asks all the time."""


class PlanningWatch:
    """Watches one query. Used under the lock of its host.

    A micro-batch may take as long as any of the recent ones, or as its records do at the mean pace
    of these: one that catches up may read for hours. How long the first ones take is not known.

    Args:
        clock: seconds, never set back.
        interval: seconds between the begins of two micro-batches; 0 if that is not known.
        wall: seconds since the epoch.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        *,
        interval: float = 0.0,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._clock = clock
        self._wall = wall
        self._calls = 0
        self._last = clock()
        self._has_read = False
        self._running: int | None = None
        self._pauses: deque[float] = deque(maxlen=RECENT)
        self._batches: deque[tuple[float, int]] = deque(maxlen=RECENT)
        self._interval = interval
        self._ended, self._seconds, self._late = 0, 0.0, 0.0
        self._ended_at: float | None = None

    def called(self) -> None:
        """Note that Spark has asked for the next micro-batch, so that the last one has ended."""
        now = self._clock()
        if self._running is not None:
            self._ended_at = self._wall()
        self._learn(now - self._last)
        self._running, self._last = None, now
        self._calls += 1

    def planned(self, records: int) -> None:
        """Note that a micro-batch begins.

        Args:
            records: that it reads, in the unit of the source's positions; 0 if that is not known.
        """
        self._running = records

    def metrics(self) -> Mapping[str, float]:
        """Return how many micro-batches have ended, when, and their time, for reports."""
        at = {} if self._ended_at is None else {POSITIONS_AT: round(self._ended_at, 3)}
        if not self._ended:
            return at
        late = {LATE_SECONDS: round(self._late, 3)} if self._interval else {}
        return {
            MICRO_BATCHES: self._ended,
            MICRO_BATCH_SECONDS: round(self._seconds, 3),
            **late,
            **at,
        }

    def problem(self) -> Problem | None:
        """Return what is wrong if Spark has not asked for very long; None if it may be usual."""
        patience = self._patience()
        if patience is None or self._clock() - self._last < patience:
            return None
        message = (
            f"Spark has begun no micro-batch for {patience:.0f} s, {USUAL:.0f} times as long as is"
            " usual, so nothing new is read: a micro-batch hangs, such as in a sink that does not"
            " answer or without free executors, or the driver's JVM stands still. See the driver's"
            " log, and its page of running tasks. If it hangs, delete the driver's pod: the next"
            " one continues from the checkpoint"
        )
        return Problem(reason=Reason.QUERY_STALLED, message=message)

    def _learn(self, pause: float) -> None:
        if self._running is None:
            if self._calls and pause >= SHORT:
                self._pauses.append(pause)
        elif not self._has_read:
            self._has_read = True  # executors and workers started meanwhile
        else:
            self._pauses.append(pause)
            self._batches.append((pause, self._running))
            self._ended += 1
            self._seconds += pause
            if pause > LATE * self._interval:
                self._late += pause

    def _patience(self) -> float | None:
        """Return the seconds after which a pause is not usual any more; None while not known."""
        longest = max(self._pauses, default=0.0)
        if self._running is None:
            return max(PATIENCE, USUAL * longest) if self._calls >= KNOWN_FROM else None
        if len(self._batches) < KNOWN_FROM:
            return None
        seconds, records = map(sum, zip(*self._batches, strict=True))
        return max(PATIENCE, USUAL * max(longest, seconds / max(1, records) * self._running))
