"""The newest reports of a source's hosts, and how soon one of them causes a turn.

Drivers report every two seconds while they read. With a thousand sources, a turn for each report
would take more than a processor, and a changed spec would wait behind them.
"""

import asyncio
import time
from collections.abc import Callable, Collection, Mapping
from typing import Final

from balanced_source.documents.report import HostReport
from balanced_source_operator.controller.liveness import Pulses, ReportNews, news_of
from balanced_source_operator.runtime.status_writer import LAG_INTERVAL

PROGRESS: Final = LAG_INTERVAL
"""Seconds until a turn of a source whose driver has only read on. The lag in a status is not
written more often."""


class Heard:
    """Mutable; of one source. Used on one event loop.

    Args:
        pulses: of the drivers; they are told of each report.
        wake: causes a turn.
    """

    def __init__(self, pulses: Pulses, wake: Callable[[], None]) -> None:
        self._pulses = pulses
        self._wake = wake
        self._reports: dict[str, HostReport | None] = {}
        self._alarm: asyncio.TimerHandle | None = None

    def note(self, host: str, report: HostReport | None) -> ReportNews:
        """Take over the newest report of a host, and return what it says that is new."""
        now, before = time.monotonic(), self._reports.get(host)
        self._reports[host] = report
        was_silent = host in self._pulses.silent(now=now)
        self._pulses.look(host, report, now=now)
        return ReportNews.MORE if report is None or was_silent else news_of(before, report)

    def keep(self, hosts: Collection[str]) -> None:
        """Forget all other hosts."""
        self._reports = {name: found for name, found in self._reports.items() if name in hosts}

    @property
    def heartbeats(self) -> Mapping[str, float]:
        """When the newest reports were written, by host."""
        return {name: found.heartbeat for name, found in self._reports.items() if found is not None}

    def wake_soon(self) -> None:
        """Cause a turn within `PROGRESS` seconds."""
        if self._alarm is None:
            self._alarm = asyncio.get_running_loop().call_later(PROGRESS, self._ring)

    def turned(self) -> None:
        """Note that a turn begins, which sees everything, or that there will be none any more."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def _ring(self) -> None:
        self._alarm = None
        self._wake()
