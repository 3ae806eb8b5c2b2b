"""How long splits have no reader."""

from collections import defaultdict
from collections.abc import Collection

from balanced_source.api import SplitId


class Gaps:
    """Seconds in which a split has no driver that reads it.

    Attributes:
        current: seconds of each split's present gap; 0 for a split that is read.
        longest: seconds of the longest gap since `clear`.
    """

    def __init__(self) -> None:
        self.current: defaultdict[SplitId, float] = defaultdict(float)
        self.longest = 0.0
        self._sampled: float | None = None

    def clear(self) -> None:
        """Forget all gaps; the clock of the samples continues."""
        self.current.clear()
        self.longest = 0.0

    def sample(
        self, splits: Collection[SplitId], read: Collection[SplitId], *, now: float, counts: bool
    ) -> None:
        """Note which splits are read now.

        Args:
            splits: all splits of the source.
            read: splits that a working driver reads.
            now: seconds since the epoch.
            counts: whether the time since the last sample makes gaps longer. It does not while no
                operator runs: no one could hand a split over.
        """
        elapsed = now - self._sampled if counts and self._sampled is not None else 0.0
        self._sampled = now
        for split in splits:
            self.current[split] = 0.0 if split in read else self.current[split] + elapsed
        self.longest = max(self.longest, *self.current.values(), 0.0)

    def longer_than(self, seconds: float) -> list[SplitId]:
        """Return the splits that have had no reader for more than these seconds."""
        return sorted(split for split, gap in self.current.items() if gap > seconds)
