"""What the page keeps of one source, and what it says about it. No I/O; times are handed in."""

from collections.abc import Mapping
from typing import Any, Final

from balanced_source.api import MAX_WATERMARK, MIN_WATERMARK, SplitId
from balanced_source.documents.lags import Lags, from_metrics
from balanced_source.names import split_name
from balanced_source_operator.host_plan import HostPlan
from balanced_source_operator.page.heat import heat_map, to_json
from balanced_source_operator.page.series import Series
from balanced_source_operator.page.timeline import Entry, Timeline
from balanced_source_operator.runtime.audience import SourceMoment
from balanced_source_operator.views.gather import view_of
from balanced_source_operator.views.model import SourceView, split_rates

SHOWN_MOVES: Final = 100
"""Moves of a plan that are named; the others are counted."""

_CONDITION: Final = ("type", "status", "reason", "message", "lastTransitionTime")
_HOST: Final = (
    "name",
    "role",
    "application",
    "state",
    "readers",
    "splits",
    "lag",
    "acknowledgedEpoch",
)

Body = dict[str, Any]


class Exhibit:
    """Mutable; of one source.

    Keeps 360 points and 50 epochs, and nothing per split unless someone looks at splits.
    """

    def __init__(self, namespace: str, name: str) -> None:
        self.namespace = namespace
        self.name = name
        self._series = Series()
        self._timeline = Timeline()
        self._views: tuple[SourceView | None, SourceView | None] = (None, None)

    def take(self, seen: SourceMoment, at: float) -> None:
        """Take over a turn of the source: a new epoch, or one that all hosts have adopted."""
        self._timeline.take(seen.assignment, _acknowledged(seen), at)

    def sample(self, seen: SourceMoment, at: float) -> None:
        """Add a point to the series."""
        self.take(seen, at)
        is_heard = all(_is_current(seen, host) for host in seen.reports)
        self._series.add(at, _lag(seen), seen.reports if is_heard else {})

    def forget_splits(self) -> None:
        """Drop what is kept per split: no one looks any more."""
        self._views = (None, None)

    @property
    def keeps_splits(self) -> bool:
        """Whether anything is kept per split."""
        return self._views != (None, None)

    def summary(self, seen: SourceMoment) -> Body:
        """Return a row of the list of sources. Unknown is None."""
        ready: Mapping[str, Any] = next(
            (c for c in seen.status.get("conditions", ()) if c.get("type") == "Ready"), {}
        )
        newest, assignment = self._series.newest, seen.assignment
        return {
            "namespace": self.namespace,
            "name": self.name,
            "ready": ready.get("status"),
            "reason": ready.get("reason"),
            "readers": _readers(seen),
            "desired": seen.desired,
            "splits": len(assignment.owners) if assignment is not None else None,
            "pending": seen.status.get("pendingSplits"),
            "epoch": assignment.epoch if assignment is not None else None,
            "acknowledged": _acknowledged(seen),
            "lag": _lag(seen),
            "rate": newest.rate if newest is not None else None,
        }

    def detail(self, seen: SourceMoment) -> Body:
        """Return everything about the source but its splits."""
        status = seen.status
        return {
            **self.summary(seen),
            "message": status.get("message", ""),
            "application": (status.get("application") or {}).get("state") or None,
            "conditions": [_picked(found, _CONDITION) for found in status.get("conditions", ())],
            "hosts": [_picked(found, _HOST) for found in status.get("hosts", ())],
            "notes": list(seen.notes),
            "series": [list(point) for point in self._series.points],
            "timeline": [_entry(entry) for entry in self._timeline.entries],
            "alignment": _alignment(seen),
            "canPlan": seen.source is not None and seen.checkpoint is not None,
        }

    def splits(self, seen: SourceMoment) -> Body:
        """Return the heat map. Rates need two reports, so they are unknown at the first call."""
        before, newest = self._views
        view = self._view(seen)
        if newest is None or _heartbeat(view) > _heartbeat(newest):
            before, newest = newest, view
            self._views = (before, newest)
        return to_json(heat_map(view, _lags(seen, view), split_rates(newest, before)))

    def _view(self, seen: SourceMoment) -> SourceView:
        return view_of(
            namespace=self.namespace,
            name=self.name,
            desired=seen.desired,
            status=seen.status,
            assignment=seen.assignment,
            reports=list(seen.reports.values()),
            notes=[],
        )


def plan_body(found: HostPlan) -> Body:
    """Return a plan for the page: counts, balance, and the first moves."""
    moving = [move for move in found.moves if move.before is not None]
    return {
        "splits": len(found.owners),
        "moved": len(moving),
        "placed": len(found.moves) - len(moving),
        "dropped": len(found.dropped),
        "hosts": {
            "before": len(found.hosts_before),
            "after": len(found.hosts_after),
            "movedBetween": found.moved_between_hosts,
        },
        "perReader": {
            "before": _range(found.before.splits),
            "after": _range(found.after.splits),
        },
        "imbalance": {"before": found.before.imbalance, "after": found.after.imbalance},
        "moves": [
            _move(move.split_id, move.before, move.after) for move in found.moves[:SHOWN_MOVES]
        ],
        "more": max(0, len(found.moves) - SHOWN_MOVES),
    }


def _range(counts: tuple[int, ...]) -> list[int]:
    return [min(counts, default=0), max(counts, default=0)]


def _move(split: SplitId, before: int | None, after: int | None) -> Body:
    return {"split": split_name(split), "from": before, "to": after}


def _entry(entry: Entry) -> Body:
    return {
        "epoch": entry.epoch,
        "lineage": entry.lineage,
        "at": entry.at,
        "adoptedAt": entry.adopted_at,
        "readers": entry.readers,
        "splits": entry.splits,
        "moved": entry.moved,
        "added": entry.added,
        "removed": entry.removed,
        "why": entry.why,
        "moves": [_move(move.split, move.before, move.after) for move in entry.moves],
    }


def _picked(found: Mapping[str, Any], names: tuple[str, ...]) -> Body:
    return {name: found.get(name) for name in names}


def _heartbeat(view: SourceView) -> float:
    return view.adopted.heartbeat if view.adopted is not None else 0.0


def _is_current(seen: SourceMoment, host: str) -> bool:
    """Whether a host's numbers are of the present: it reports, and its query has not ended."""
    return host not in seen.silent and bool(seen.reports[host].instance)


def _acknowledged(seen: SourceMoment) -> int | None:
    """Return the newest epoch that all hosts have adopted.

    None if there is none, or no one knows.
    """
    if seen.status:
        return seen.status.get("acknowledgedEpoch") or None
    return min((report.epoch for report in seen.reports.values()), default=0) or None


def _readers(seen: SourceMoment) -> int | None:
    if seen.status:
        return seen.status.get("readers") or None
    return max((report.parallelism for report in seen.reports.values()), default=0) or None


def _lag(seen: SourceMoment) -> int | None:
    if seen.status:
        lag: int | None = seen.status.get("lag")
        return lag
    lags = [
        report.lag if _is_current(seen, host) else None for host, report in seen.reports.items()
    ]
    known = [lag for lag in lags if lag is not None]
    return sum(known) if known and len(known) == len(lags) else None


def _lags(seen: SourceMoment, view: SourceView) -> Lags:
    """Return the lags in all current reports.

    Sums per reader are those of the epoch that the report is about.
    """
    splits: dict[SplitId, int | None] = {}
    readers: dict[int, int | None] = {}
    for host, report in seen.reports.items():
        if not _is_current(seen, host):
            continue
        found = from_metrics(report.metrics)
        splits.update(found.splits)
        if report.epoch == view.epoch:
            readers.update(found.readers)
    return Lags(splits=splits, readers=readers)


def _alignment(seen: SourceMoment) -> Body | None:
    """Return how far the source and the others of its group are in event time.

    None if it is in no group.
    """
    own = next(
        (report.alignment for report in seen.reports.values() if report.alignment is not None), None
    )
    aligned = next((report.metrics.get("alignedTo") for report in seen.reports.values()), None)
    if own is None and aligned is None:
        return None
    group = seen.assignment.alignment if seen.assignment is not None else None
    return {
        "group": own.group if own is not None else None,
        "own": _time(own.watermark) if own is not None else None,
        "others": _time(group.watermark) if group is not None else None,
        "maxDrift": own.max_drift if own is not None else None,
        "alignedTo": aligned if type(aligned) in (int, float) else None,
    }


def _time(watermark: int) -> Body:
    """Return a watermark in milliseconds since the epoch, or the word for one that is no time."""
    if watermark == MIN_WATERMARK:
        return {"word": "not known yet"}
    return {"word": "idle"} if watermark == MAX_WATERMARK else {"time": watermark}
