"""How long a driver waits after a report that could not be written, and what it logs of that."""

import time
from collections.abc import Callable
from typing import Final

from balanced_source_spark.claims import HEARTBEAT_INTERVAL
from balanced_source_spark.fault_log import FaultLog

_FIRST: Final = 2.0
"""Seconds until the first further attempt: most faults are over then."""

_LONGEST: Final = HEARTBEAT_INTERVAL
"""No longer: when the fault is over, the host must not be taken for dead because of the pause."""


class ReportRetries:
    """Attempts of one driver.

    Args:
        clock: seconds that never go back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._pause = _FIRST
        self._log = FaultLog("cannot report now; the query continues", clock=clock)

    def failed(self, error: Exception) -> float:
        """Note a report that was not written; return the seconds until the next attempt."""
        self._log.note(error)
        pause, self._pause = self._pause, min(2 * self._pause, _LONGEST)
        return pause

    def written(self) -> None:
        """Note a report that was written."""
        self._pause = _FIRST
        self._log.over("reports are written again")
