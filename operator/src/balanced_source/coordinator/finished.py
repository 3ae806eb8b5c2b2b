"""Which splits a report shows as read to their end."""

from collections.abc import Collection
from typing import Any

from balanced_source.api import BoundedSplit, Source, SplitId
from balanced_source.coordinator.state import CoordinatorState, SplitT
from balanced_source.documents.report import HostReport


def newly_finished(
    state: CoordinatorState[SplitT], source: Source[SplitT, Any], report: HostReport, told: Collection[SplitId]
) -> list[SplitId]:
    """Return the owned splits of a report that are read to their end, without those in `told`."""
    if not source.has_ending_splits:
        return []
    splits = state.splits_now(s for s in report.positions if s in state.splits and s not in told)
    return [s for s, split in splits.items() if _is_finished(split)]


def _is_finished(split: Any) -> bool:
    return isinstance(split, BoundedSplit) and split.is_finished
