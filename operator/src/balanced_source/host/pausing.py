"""Event-time alignment of splits of which no server tells when their records happened.

`balanced_source.host.alignment` asks for times before it admits records. Here only readers know
them, while they read. So a micro-batch has one *bound* for all its tasks: a reader that comes to a
record beyond it keeps that record back, reads no more of the split, and tells the time. The next
planning learns so how far in time each split is, raises the bound with the slowest one, and leaves
out the splits that are beyond it (FLIP-182 pauses them).
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from balanced_source.api import MAX_WATERMARK, MIN_WATERMARK, SplitId
from balanced_source.documents.journal import JournalRecord, Pause
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.host.alignment import advance
from balanced_source.host.journaling import caught_up


@dataclass(slots=True, kw_only=True)
class PauseAligner:
    """What one process knows of its query: nothing at first, so its first micro-batch only looks.

    Attributes:
        max_drift: milliseconds that a split may be ahead of the slowest one.
        idle_timeout: seconds after which a split that is read to its end holds no one back.
        bound: event time beyond which a split waits, in milliseconds; it never falls.
        times: split → how far in time it is: nothing before that comes of it any more.
        heard: how far the other sources of the alignment group are.
        ahead: splits that the newest micro-batch leaves out.
        silent_since: split that is read to its end → since when, in seconds.
    """

    max_drift: int
    idle_timeout: float
    bound: int = MIN_WATERMARK
    times: dict[SplitId, int] = field(default_factory=dict)
    heard: int = MAX_WATERMARK
    ahead: frozenset[SplitId] = frozenset()
    silent_since: dict[SplitId, float] = field(default_factory=dict)
    _slowest: int | None = None

    def note(self, end: StreamOffset, records: Iterable[JournalRecord], *, now: float) -> None:
        """Take in what a micro-batch has read.

        Args:
            end: of the micro-batch.
            records: that its readers have sealed.
            now: in seconds, monotonic.
        """
        found = list(records)
        moved: set[SplitId] = set()
        for record in found:
            moved.update(record.ends)
            for split_id, time in record.times.items():
                self.times[split_id] = max(time, self.times.get(split_id, time))
        quiet = caught_up(end, found) - moved
        self.silent_since = {
            s: self.silent_since.get(s, now)
            for s in end.positions
            if s in quiet or (s in self.silent_since and s not in moved)
        }

    def note_read(self, splits: Iterable[SplitId], *, now: float) -> None:
        """Take in that splits are read to the ends that their source names.

        No micro-batch follows that would find nothing there.

        Args:
            splits: of which nothing is left.
            now: in seconds, monotonic.
        """
        for split_id in splits:
            self.silent_since.setdefault(split_id, now)

    def pause(self, unread: Collection[SplitId], *, others: int, now: float) -> Pause:
        """Return what the next micro-batch leaves out.

        Args:
            unread: splits that are not read to their end.
            others: how far the other sources of the group are; `MIN_WATERMARK`: unknown.
            now: in seconds, monotonic.
        """
        self.heard = others
        self._forget_others(unread)
        self._slowest = self._find_slowest(unread, now)
        self.bound = advance(self.bound, self._slowest, others=others, max_drift=self.max_drift)
        self.ahead = frozenset(s for s in unread if self.times.get(s, self.bound) > self.bound)
        return Pause(beyond=self.bound, splits=self.ahead)

    @property
    def watermark(self) -> int:
        """How far this source is, for the others of its group."""
        return MIN_WATERMARK if self._slowest is None else self._slowest

    def report(self) -> dict[str, Any]:
        """For the query's progress: milliseconds since the epoch.

        `others` only while there is someone to wait for.
        """
        known = self._slowest not in (None, MAX_WATERMARK)
        figures = {
            "alignedTo": None if self.bound == MIN_WATERMARK else self.bound,
            "slowest": self._slowest if known else None,
            "idle": len(self.silent_since),
        }
        if self.heard == MAX_WATERMARK:
            return figures
        return {**figures, "others": "unknown" if self.heard == MIN_WATERMARK else self.heard}

    def _find_slowest(self, unread: Collection[SplitId], now: float) -> int | None:
        """The slowest split that is not idle; None if the time of one is unknown."""
        active = [s for s in unread if not self._is_idle(s, now)]
        # One of which nothing was read yet may have old records, so it holds the others.
        if any(s not in self.times for s in active):
            return None
        return min((self.times[s] for s in active), default=MAX_WATERMARK)

    def _is_idle(self, split_id: SplitId, now: float) -> bool:
        since = self.silent_since.get(split_id)
        return since is not None and now - since >= self.idle_timeout

    def _forget_others(self, unread: Collection[SplitId]) -> None:
        """Splits that are read, or are another host's now, count no more."""
        kept = frozenset(unread)
        self.times = _within(self.times, kept)
        self.silent_since = _within(self.silent_since, kept)


def _within(table: Mapping[SplitId, Any], split_ids: frozenset[SplitId]) -> dict[SplitId, Any]:
    return {split_id: value for split_id, value in table.items() if split_id in split_ids}
