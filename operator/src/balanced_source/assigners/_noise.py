"""How much a measured quantity changes by itself: what tells a lasting change from noise.

Loads vary on every time scale: from one report to the next, in bursts of minutes, over the day. The
mean of a few minutes therefore says little about the mean of the next hours. `NoiseHistory` keeps
means of equal blocks of time and compares neighbouring blocks at several lengths (the Allan
variance, D. W. Allan, "Statistics of atomic frequency standards", 1966). A slow trend hardly
counts, correlated noise does.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Self

MAX_BLOCKS: Final = 96
"""Number of blocks kept; older ones are dropped."""

MIN_BLOCKS: Final = 3
"""Number of blocks below which nothing is known about the noise."""

_SCALES: Final = (1, 2, 4, 8, 16)
"""Lengths at which neighbouring means are compared, in blocks."""

_FEW_PAIRS: Final = 12.0
"""Inflates an estimate from k pairs by 1 + 12/k: noise is often burstier than it seems at first."""


_PEAK_SHARE: Final = 0.7
"""Share of the largest change seen so far that counts as the standard error of a single block."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseHistory:
    """Block means of one quantity. Immutable.

    Attributes:
        block: length of a block in seconds.
        segments: block means in order of time. A new segment begins when the quantity was changed
            on purpose: means of different segments are not compared.
        total: sum of the observations of the open block.
        count: number of these observations.
        opened_at: start of the open block, in seconds; None before the first observation.
    """

    block: float
    segments: tuple[tuple[float, ...], ...] = ((),)
    total: float = 0.0
    count: int = 0
    opened_at: float | None = None

    @property
    def blocks(self) -> int:
        """Number of complete blocks."""
        return sum(map(len, self.segments))

    def observe(self, value: float, now: float) -> Self:
        """Return the history with an observation at time `now`."""
        started = now if self.opened_at is None else self.opened_at
        total, count = self.total + value, self.count + 1
        if now - started < self.block:
            return self._with(total=total, count=count, opened_at=started)
        segments = (*self.segments[:-1], (*self.segments[-1], total / count))
        return self._with(segments=_recent(segments), opened_at=now)

    def broken(self) -> Self:
        """Return the history after the quantity was changed on purpose."""
        is_empty = not self.segments[-1]
        return self._with(
            segments=self.segments if is_empty else (*self.segments, ()), opened_at=None
        )

    def joined(self, other: "NoiseHistory") -> Self:
        """Return the history with the complete blocks of `other` as a segment of their own."""
        return self._with(segments=_recent((*self.segments, *other.segments, ())), opened_at=None)

    def without_newest(self, blocks: int) -> Self:
        """Return the history without the newest complete blocks of the current segment."""
        newest = self.segments[-1]
        return self._with(
            segments=(*self.segments[:-1], newest[: max(0, len(newest) - blocks)]), opened_at=None
        )

    def error_of_mean(self, seconds: float) -> float:
        """Return the standard error of a mean over `seconds`; infinity if too little is known."""
        if self.blocks < MIN_BLOCKS:
            return math.inf
        # Loads vary on every time scale, and the largest of them may be the one that deceives.
        return max(self._error(scale, seconds) for scale in _SCALES)

    def _error(self, scale: int, seconds: float) -> float:
        squares = [(b - a) ** 2 / 2 for s in self.segments for a, b in pairwise(_means(s, scale))]
        # The history is too short for this length; shorter ones tell.
        if not squares:
            return 0.0
        deviation = math.sqrt(sum(squares) / len(squares)) * (1 + _FEW_PAIRS / len(squares))
        # Blocks of this length are averaged over the time of the trial.
        if scale * self.block < seconds:
            return deviation * math.sqrt(scale * self.block / seconds)
        # Nothing is averaged out at this length, and bursts are not normally distributed.
        return max(deviation, _PEAK_SHARE * math.sqrt(max(squares)))

    def _with(
        self,
        *,
        segments: tuple[tuple[float, ...], ...] | None = None,
        total: float = 0.0,
        count: int = 0,
        opened_at: float | None,
    ) -> Self:
        kept = self.segments if segments is None else segments
        return type(self)(
            block=self.block, segments=kept, total=total, count=count, opened_at=opened_at
        )


def _means(values: Sequence[float], scale: int) -> Iterator[float]:
    """Means of neighbouring groups of `scale` values; the newest group is complete."""
    # The rest is left out at the old end.
    for start in range(len(values) % scale, len(values), scale):
        yield sum(values[start : start + scale]) / scale


def _recent(segments: tuple[tuple[float, ...], ...]) -> tuple[tuple[float, ...], ...]:
    """The newest `MAX_BLOCKS` blocks."""
    excess = sum(map(len, segments)) - MAX_BLOCKS
    kept = []
    for segment in segments:
        dropped = min(max(0, excess), len(segment))
        excess -= dropped
        kept.append(segment[dropped:])
    return (*(segment for segment in kept[:-1] if segment), kept[-1])
