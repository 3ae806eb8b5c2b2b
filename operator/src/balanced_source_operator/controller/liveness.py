"""Tells a driver that reports from one that has fallen silent, by the operator's own clock."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from enum import Enum
from operator import attrgetter
from typing import Any, Final, TypeVar

from balanced_source.api import Json, SplitId
from balanced_source.coordinator import CoordinatorState
from balanced_source.documents.report import (
    MILLIS_BEHIND,
    POSITIONS_AT,
    UNREAD_AT,
    HostReport,
    millis_behind,
    records_behind,
)
from balanced_source.documents.storage import FIRST_HOST
from balanced_source.host.reader_figures import joined
from balanced_source_operator.controller.driver_restarts import DriverRestarts
from balanced_source_operator.controller.driver_starts import DriverStart, starts_of
from balanced_source_operator.kube.port import Manifest

V = TypeVar("V")

_MOVING: Final = ("positions", "lag", "metrics")
_MEASURED: Final = attrgetter(*_MOVING)
_LASTING: Final = attrgetter(
    *(f.name for f in fields(HostReport) if f.name not in (*_MOVING, "sequence", "heartbeat"))
)
"""Everything of a report that differs only if something has happened. Most reports are compared,
and to make copies for that would take ten times as long."""

ALIVE: Final = 30.0
"""Seconds after a report in which its writer counts as alive: three heartbeats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Liveness:
    """States when the newest report of a source was seen first.

    Attributes:
        seen: incarnation and sequence of that report; None while there is none.
        since: when it was seen first, in seconds. An operator that has just started gives every
            driver `ALIVE` seconds.
    """

    seen: tuple[int, int] | None = None
    since: float = 0.0

    def looked(self, report: HostReport | None, *, now: float) -> "Liveness":
        """Return what is known after a further look at the newest report."""
        seen = (report.incarnation, report.sequence) if report is not None else None
        # By the operator's clock, from when it was seen: the driver's clock may be another time.
        return self if seen == self.seen else Liveness(seen=seen, since=now)

    def is_silent(self, *, now: float) -> bool:
        """Return whether the last report is too old to say anything about the present."""
        return self.seen is not None and now - self.since >= ALIVE

    def pause(self, *, now: float) -> float | None:
        """Return the seconds until the driver counts as silent unless it reports.

        None if it does already.
        """
        left = self.since + ALIVE - now
        return left if self.seen is not None and left > 0 else None


class Pulses:
    """Liveness of all hosts of a source."""

    def __init__(self) -> None:
        self._of: dict[str, Liveness] = {}
        self._starts: dict[str, DriverStart] = {}
        self._restarts = DriverRestarts()
        self._heard_at = self._heard_since = -math.inf

    def look(self, host: str, report: HostReport | None, *, now: float) -> None:
        """Look at the newest report of a host."""
        before = self._of.get(host, Liveness())
        self._of[host] = after = before.looked(report, now=now)
        if after.seen != before.seen:
            # After a time in which no one was heard, the silence of all hosts counts from now.
            self._heard_since = now if now - self._heard_at >= ALIVE else self._heard_since
            self._heard_at = now

    def silence(self, host: str, *, now: float) -> float:
        """Return the seconds for which a host was silent while others of its source were heard.

        If no one was heard, the API server or a watch may have been out of reach: that time does
        not count.
        """
        pulse = self._of.get(host)
        if pulse is None or pulse.seen is None or not self.is_heard(now=now):
            return 0.0
        return now - max(pulse.since, self._heard_since)

    def is_heard(self, *, now: float) -> bool:
        """Return whether any driver of the source was heard just now."""
        return now - self._heard_at < ALIVE

    @property
    def heard_at(self) -> float:
        """When a driver of the source was heard last; minus infinity if none ever was."""
        return self._heard_at

    def look_at(self, state: CoordinatorState[Any], *, now: float) -> None:
        """Look at all reports that the coordinator has accepted.

        Hosts that are gone are forgotten.
        """
        self._of = {host: pulse for host, pulse in self._of.items() if host in state.hosts}
        for host, known in state.hosts.items():
            self.look(host, known.report, now=now)

    def look_at_drivers(
        self,
        applications: Mapping[str, Sequence[Manifest]],
        pods: Sequence[Manifest],
        *,
        now: float,
    ) -> Mapping[str, int]:
        """Look at the driver pods of all hosts.

        Return how many were started again since the last look, by host.

        Args:
            applications: of each host.
            pods: of the source.
            now: by the operator's clock.
        """
        self._starts = starts_of(applications, pods, before=self._starts, now=now)
        return self._restarts.look(applications, pods)

    def starting(self, state: CoordinatorState[Any]) -> dict[str, str]:
        """Return the driver pods that are newer than the last report of their hosts, by host.

        A Spark operator starts a failed driver again in the same application, and the pod is
        Running before its JVM has loaded anything. Hosts that have never reported are left out:
        the coordinator waits for them by itself.
        """
        return {
            host: start.pod
            for host, start in self._starts.items()
            if host in state.members and self._precedes(state.hosts[host].report, host, start)
        }

    def _precedes(self, report: HostReport | None, host: str, start: DriverStart) -> bool:
        """Return whether a report is older than the start of a driver.

        The clock of the report's node may be behind the API server's. So a report that was first
        seen when no older driver can live any more is one of this driver.
        """
        if report is None or not report.heartbeat or start.created_at <= report.heartbeat:
            return False
        return self._of.get(host, Liveness()).since - start.seen_at < ALIVE

    def silent(self, *, now: float) -> frozenset[str]:
        """Return the hosts whose last report says nothing about the present."""
        return frozenset(host for host, pulse in self._of.items() if pulse.is_silent(now=now))

    def pause(self, *, now: float) -> float | None:
        """Return the seconds until the next host counts as silent unless it reports.

        None if there is none.
        """
        return min(
            (left for pulse in self._of.values() if (left := pulse.pause(now=now)) is not None),
            default=None,
        )


class ReportNews(Enum):
    """What a report says that the one before it did not say."""

    HEARTBEAT = "its writer lives"
    PROGRESS = "its writer has read on, or knows of more to read"
    MORE = "anything else"


def news_of(before: HostReport | None, after: HostReport) -> ReportNews:
    """Return what a report says that is new.

    Sources in an alignment group are never left alone: others wait for what they say.
    """
    if before is None or after.alignment is not None or _LASTING(before) != _LASTING(after):
        return ReportNews.MORE
    if _MEASURED(before) == _MEASURED(after):
        return ReportNews.HEARTBEAT
    has_same_splits = before.positions.keys() == after.positions.keys()
    is_as_known = (before.lag is None) == (after.lag is None)
    return ReportNews.PROGRESS if has_same_splits and is_as_known else ReportNews.MORE


def is_heartbeat(before: HostReport | None, after: HostReport) -> bool:
    """Return whether a report says nothing but that its writer lives."""
    return news_of(before, after) is ReportNews.HEARTBEAT


def newest_report(state: CoordinatorState[Any]) -> HostReport | None:
    """Return what the drivers of all hosts have reported, as if it were one report.

    None if there is none.

    Its heartbeat is the oldest one. Its lag is unknown as long as that of one host with readers is.
    """
    reports = [host.report for host in state.hosts.values() if host.report is not None]
    if len(state.hosts) == 1 or not reports:
        return reports[0] if reports else None
    members = [state.hosts[name].report for name in state.members]
    newest = max(reports, key=lambda report: report.epoch)
    return replace(
        newest,
        host=FIRST_HOST,
        incarnation=sum(report.incarnation for report in reports),
        sequence=sum(report.sequence for report in reports),
        owners=_joined(report.owners for report in reports),
        positions=_joined(report.positions for report in reports),
        lag=records_behind(members),
        heartbeat=min(report.heartbeat for report in reports),
        problems=tuple(problem for report in reports for problem in report.problems),
        metrics={
            **_metrics(reports),
            **_behind(members),
            **joined(report.metrics for report in reports),
        },
    )


def _joined(tables: Iterable[Mapping[SplitId, V]]) -> dict[SplitId, V]:
    return {split_id: value for table in tables for split_id, value in table.items()}


def _metrics(reports: Sequence[HostReport]) -> dict[str, Json]:
    """Numbers are added up; one that a host does not know is left out."""
    names = set.intersection(*(set(report.metrics) for report in reports))
    values = {name: [report.metrics[name] for report in reports] for name in sorted(names)}
    for no_sum in (MILLIS_BEHIND, UNREAD_AT, POSITIONS_AT):
        values.pop(no_sum, None)
    return {
        name: sum(found)
        for name, found in values.items()
        if all(type(n) in (int, float) for n in found)
    }


def _behind(members: Sequence[HostReport | None]) -> dict[str, Json]:
    """The slowest host counts; unknown if that of any is."""
    known = [report for report in members if report is not None]
    millis = millis_behind(known) if len(known) == len(members) else None
    return {} if millis is None else {MILLIS_BEHIND: millis}
