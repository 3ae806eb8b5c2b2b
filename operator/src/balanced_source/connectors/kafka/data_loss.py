"""Records that are gone before they were read: retention was faster, or the topic was deleted and created anew."""

import enum
from collections.abc import Mapping

from balanced_source.api import SplitId


class OnDataLoss(enum.Enum):
    """What happens then. FAIL: nothing is skipped silently; somebody decides. CONTINUE: it is skipped, and counted."""

    FAIL = "Fail"
    CONTINUE = "Continue"


class SkipCounter:
    """Counts offsets that were planned and do not exist any more, each of them once."""

    def __init__(self) -> None:
        self._upto: dict[SplitId, int] = {}
        self.total = 0

    def note(self, ranges: Mapping[SplitId, tuple[int, int]], begins: Mapping[SplitId, int]) -> int:
        """Offsets of these ranges (start, end) that lie before what there is, and were not counted before."""
        fresh = 0
        for split_id, (start, end) in ranges.items():
            gone = min(begins.get(split_id, start), end)
            known = max(start, self._upto.get(split_id, start))
            if gone > known:
                fresh += gone - known
                self._upto[split_id] = gone
        self.total += fresh
        return fresh
