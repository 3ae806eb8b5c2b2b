"""Which splits a report shows as read to their end."""

from collections.abc import Collection
from itertools import chain
from typing import Any

from balanced_source.api import STOP, BoundedSplit, Source, SplitId
from balanced_source.coordinator.state import CoordinatorState, SplitT
from balanced_source.documents.report import HostReport


def newly_finished(
    state: CoordinatorState[SplitT],
    source: Source[SplitT, Any],
    report: HostReport,
    handled: Collection[SplitId],
) -> list[SplitId]:
    """Return the owned splits of a report that are read to their end, except the `handled` ones.

    A host may have let go of a split at its end, and end with that: what came back to it meanwhile
    counts too.
    """
    # A source whose splits never end needs no look at each split of each report.
    if not source.has_ending_splits:
        return []
    known = chain(report.positions, report.retained)
    splits = state.splits_now(s for s in known if s in state.splits and s not in handled)
    return [s for s, split in splits.items() if is_at_end(split, report)]


def reopened(
    state: CoordinatorState[SplitT], report: HostReport, handled: Collection[SplitId]
) -> frozenset[SplitId]:
    """Return the `handled` splits that a registering host holds before their end.

    Its Spark checkpoint is an older copy: when they are at their end again, that is news.
    """
    held = state.splits_now(s for s in report.positions if s in state.splits and s in handled)
    return frozenset(s for s, split in held.items() if not is_at_end(split, report))


def is_at_end(split: Any, report: HostReport) -> bool:
    """Return whether a split is at its end.

    If the split does not know one, its reader may have found it.
    """
    if isinstance(split, BoundedSplit) and split.stopping_position is not None:
        return split.is_finished
    end = report.attributes.get(split.split_id, {}).get(STOP)
    return end is not None and (split.position or 0) >= end
