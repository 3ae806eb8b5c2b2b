"""Logs a fault that may last: when it begins, and now and then while it lasts."""

import time
from collections.abc import Callable
from typing import Final

from balanced_source_adapters.lazy_log import get_logger

SAY_AGAIN: Final = 60.0
"""Seconds between two log lines about the same fault."""

log = get_logger(__name__)


class FaultLog:
    """Of one thing that is tried again and again.

    Args:
        event: what cannot be done, for the log line.
        clock: seconds that never go back.
    """

    def __init__(self, event: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._event = event
        self._clock = clock
        self._logged: tuple[str, float] | None = None

    def note(self, error: Exception) -> None:
        """Log a fault, unless the same one was logged in the last minute."""
        text, now = str(error) or repr(error), self._clock()
        if self._logged is not None:
            before, at = self._logged
            if text == before and now - at < SAY_AGAIN:
                return
        self._logged = (text, now)
        log.warning(self._event, error=text)

    def over(self, event: str) -> None:
        """Log that the fault is over, if one was logged."""
        if self._logged is not None:
            log.info(event)
        self._logged = None
