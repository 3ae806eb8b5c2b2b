"""Lag and rate of a source over the last hour.

A bounded number of points, whatever the source's size. Pure.
"""

from collections import deque
from collections.abc import Mapping
from typing import Final, NamedTuple

from balanced_source.documents.report import HostReport
from balanced_source.host.reader_figures import records_read

POINTS: Final = 360
"""Points that are kept of a source."""

SPACING: Final = 10.0
"""Seconds between two points: together they cover an hour."""


class Point(NamedTuple):
    """One look at a source; None is unknown.

    Attributes:
        at: seconds since the epoch.
        lag: records not yet read.
        rate: positions per second that were committed since the point before; records per second
            where splits have changed since, as those of files always do.
    """

    at: float
    lag: int | None
    rate: float | None


class _HostMark(NamedTuple):
    """How far a host was.

    Attributes:
        query: lineage and incarnation.
        splits: epoch and number of splits. The sum of positions is comparable only while they stay.
        at: when the report was written.
        total: sum of the positions; None if one is not a number.
        records: delivered by each reader since the query started; empty if unknown.
    """

    query: tuple[int, int]
    splits: tuple[int, int]
    at: float
    total: int | None
    records: Mapping[int, int]


class Series:
    """Mutable; of one source."""

    def __init__(self) -> None:
        self._points: deque[Point] = deque(maxlen=POINTS)
        self._marks: dict[str, _HostMark] = {}

    @property
    def points(self) -> tuple[Point, ...]:
        """The points, oldest first."""
        return tuple(self._points)

    @property
    def newest(self) -> Point | None:
        """The newest point; None before the first."""
        return self._points[-1] if self._points else None

    def add(self, at: float, lag: int | None, reports: Mapping[str, HostReport]) -> None:
        """Add a point: `lag` as given, the rate from the hosts' reports."""
        marks = {host: _mark(report) for host, report in reports.items()}
        rates = [_rate(self._marks.get(host), mark) for host, mark in marks.items()]
        known = [rate for rate in rates if rate is not None]
        rate = sum(known) if known and len(known) == len(rates) else None
        self._points.append(Point(at=at, lag=lag, rate=rate))
        self._marks = marks


def _mark(report: HostReport) -> _HostMark:
    positions = list(report.positions.values())
    is_numeric = all(type(position) is int for position in positions)
    return _HostMark(
        query=(report.lineage, report.incarnation),
        splits=(report.epoch, len(positions)),
        at=report.heartbeat,
        total=sum(position for position in positions if type(position) is int)
        if is_numeric
        else None,
        records=records_read(report.metrics),
    )


def _rate(before: _HostMark | None, now: _HostMark) -> float | None:
    """Return positions or records per second between two marks; None if nothing can be said.

    A host that has not reported since says nothing about its rate.
    """
    if before is None or before.query != now.query or now.at <= before.at:
        return None
    advance = _advance(before, now)
    return None if advance is None else advance / (now.at - before.at)


def _advance(before: _HostMark, now: _HostMark) -> int | None:
    if before.splits == now.splits and before.total is not None and now.total is not None:
        return now.total - before.total if now.total >= before.total else None
    # The sum is of other splits. What readers have delivered does not depend on these.
    if not before.records or any(
        now.records.get(reader, -1) < count for reader, count in before.records.items()
    ):
        return None
    return sum(now.records.values()) - sum(before.records.values())
