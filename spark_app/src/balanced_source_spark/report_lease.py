"""Whether a driver may plan: one of several hosts must not, once others may have got its splits.

A source with `hostLossPolicy.type: Reassign` gives up a host that has not reported for some time.
The driver of such a host may still run, cut off from the API server. It stops planning after half
of that time, which it counts from before it wrote its last report: so it has stopped long before
the operator, which counts from when it saw that report.
"""

import time
from collections.abc import Callable

from balanced_source_adapters.lazy_log import get_logger

log = get_logger(__name__)


class ReportLease:
    """Mutable; the caller holds a lock.

    Args:
        clock: seconds that never go back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        # As if it had just reported: a driver that starts gets the whole time.
        self._written_at = clock()
        self._is_over = False

    def now(self) -> float:
        """Return the time at which a report begins to be written."""
        return self._clock()

    def renew(self, begun_at: float) -> None:
        """A report was written that began at that time."""
        self._written_at = max(self._written_at, begun_at)

    def allows(self, seconds: float | None) -> bool:
        """Return whether a micro-batch may be planned; each change is logged.

        Args:
            seconds: that the newest assignment allows without a report; None for no limit.
        """
        silence = self._clock() - self._written_at
        is_over = seconds is not None and silence > seconds
        if is_over and not self._is_over:
            log.warning(
                "reading stops: the API server cannot be reached, and other hosts may get the"
                " splits",
                seconds_without_report=round(silence),
            )
        elif self._is_over and not is_over:
            log.info("reading continues: reports are written again")
        self._is_over = is_over
        return not is_over
