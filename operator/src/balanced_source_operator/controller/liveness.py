"""Tells a driver that reports from one that has fallen silent, by the operator's own clock."""

from dataclasses import dataclass, replace
from typing import Any, Final

from balanced_source.coordinator import CoordinatorState
from balanced_source.documents.report import HostReport

ALIVE: Final = 30.0
"""Seconds after a report in which its writer counts as alive: three heartbeats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Liveness:
    """States when the newest report of a source was seen first.

    Attributes:
        seen: incarnation and sequence of that report; None while there is none.
        since: when it was seen first, in seconds. An operator that has just started gives every driver `ALIVE` seconds.
    """

    seen: tuple[int, int] | None = None
    since: float = 0.0

    def looked(self, report: HostReport | None, *, now: float) -> "Liveness":
        """Return what is known after a further look at the newest report."""
        seen = (report.incarnation, report.sequence) if report is not None else None
        return self if seen == self.seen else Liveness(seen=seen, since=now)

    def is_silent(self, *, now: float) -> bool:
        """Return whether the last report is so old that its numbers say nothing about the present."""
        return self.seen is not None and now - self.since >= ALIVE

    def pause(self, *, now: float) -> float | None:
        """Return the seconds until the driver counts as silent unless it reports; None if it does already."""
        left = self.since + ALIVE - now
        return left if self.seen is not None and left > 0 else None


def is_heartbeat(before: HostReport | None, after: HostReport) -> bool:
    """Return whether a report says nothing but that its writer lives.

    Sources in an alignment group are never left alone: others wait for what they say.
    """
    if before is None or after.alignment is not None:
        return False
    return replace(after, sequence=before.sequence, heartbeat=before.heartbeat) == before


def newest_report(state: CoordinatorState[Any]) -> HostReport | None:
    """Return the newest report of the source's driver; None if there is none."""
    return next(iter(state.hosts.values())).report
