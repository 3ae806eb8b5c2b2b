"""What a driver makes of the news about the other sources of its alignment group."""

import time
from collections.abc import Callable

from balanced_source.api import MAX_WATERMARK, MIN_WATERMARK
from balanced_source.documents.alignment import GroupWatermark, SourceWatermark
from balanced_source.documents.assignment import Assignment


class GroupAlignment:
    """How far the others are, as long as the operator says so. Used by one thread.

    What it said last holds for the idle timeout; should it have said nothing new by then it is
    away, and only the source's own splits count. The same at the start: others are waited for so
    long, and no longer.

    Args:
        group: name within the namespace.
        max_drift: milliseconds.
        idle_timeout: seconds.
        newest: the newest assignment that was seen.
        clock: seconds, monotonic.
    """

    def __init__(
        self,
        group: str,
        *,
        max_drift: int,
        idle_timeout: float,
        newest: Callable[[], Assignment | None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._group = group
        self._max_drift = max_drift
        self._idle_timeout = idle_timeout
        self._newest = newest
        self._clock = clock
        self._heard: GroupWatermark | None = None
        self._heard_at = clock()

    def others(self) -> int:
        """The least watermark of the others.

        `MIN_WATERMARK`: wait, `MAX_WATERMARK`: there is no one to wait for.
        """
        assignment = self._newest()
        if assignment is not None and assignment.alignment not in (None, self._heard):
            self._heard, self._heard_at = assignment.alignment, self._clock()
        if self._clock() - self._heard_at >= self._idle_timeout:
            return MAX_WATERMARK
        return MIN_WATERMARK if self._heard is None else self._heard.watermark

    def report(self, watermark: int) -> SourceWatermark:
        """What the report says about this source."""
        return SourceWatermark(
            group=self._group,
            watermark=watermark,
            max_drift=self._max_drift,
            idle_timeout=self._idle_timeout,
        )
