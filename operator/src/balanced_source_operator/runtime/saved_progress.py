"""When positions are stored although nothing was decided."""

import time
from typing import Any, Final

from balanced_source.coordinator import CoordinatorState
from balanced_source.documents.report import HostReport
from balanced_source_operator.controller.liveness import is_heartbeat

BUSY: Final = 5.0
"""Seconds until positions that are due are tried again while too many writes are under way."""


class SavedProgress:
    """What of the reports of a source is in its stored state, and since when.

    Args:
        interval: seconds between two stores.
    """

    def __init__(self, interval: float) -> None:
        self._interval = interval
        self._at = 0.0
        self._reports: dict[str, HostReport | None] = {}

    def note(self, state: CoordinatorState[Any]) -> None:
        """Note that a state is stored now."""
        self._at = time.monotonic()
        self._reports = {name: host.report for name, host in state.hosts.items()}

    def left(self) -> float:
        """Return the seconds until the next store is due; 0 if it is."""
        return max(0.0, self._at + self._interval - time.monotonic())

    def pause(self, state: CoordinatorState[Any]) -> float | None:
        """Return the seconds until positions should be stored; None if all are.

        Reports that follow may say nothing new, and cause no turn.
        """
        is_stored = all(
            host.report is None or is_heartbeat(self._reports.get(name), host.report)
            for name, host in state.hosts.items()
        )
        return None if is_stored else self.left() or BUSY
