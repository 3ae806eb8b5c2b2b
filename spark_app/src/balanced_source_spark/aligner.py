"""Event-time alignment: asks servers when records happened, and caps how far each split is read.

The rules are pure (`balanced_source.host.alignment`); here are the questions to the servers and the
clock.
"""

import time
from collections.abc import Callable, Container, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, Final

from balanced_source.api import MAX_WATERMARK, MIN_WATERMARK, SplitId
from balanced_source.errors import DiscoveryError
from balanced_source.host.alignment import RecordTime, advance, capped, slowest, watermarks
from balanced_source_adapters.lazy_log import get_logger
from balanced_source_spark.ends import FORGET, MOST_SCOPES, TELL_EVERY, ScopeOf, first_member

PATIENCE: Final = 2.0
"""Seconds to wait for clusters.

Splits of one that does not answer are not read on, and hold others until idle.
"""

RecordsFrom = Callable[[str, Mapping[SplitId, int]], Mapping[SplitId, RecordTime | None]]
"""Asks one cluster for the first records at or after times; blocking. Raises DiscoveryError."""

log = get_logger(__name__)


class Aligner:
    """Holds the aligned time of one query. Used by one thread.

    Args:
        ask: see `RecordsFrom`.
        max_drift: milliseconds that a split may be ahead of the slowest one.
        idle_timeout: seconds after which a split that is read to its end holds no one back.
        others: how far the other sources of the alignment group are, see
            `balanced_source_spark.group_alignment`.
        clock: seconds, monotonic.
        scope_of: the cluster of a split.
    """

    def __init__(
        self,
        ask: RecordsFrom,
        *,
        max_drift: int,
        idle_timeout: float,
        others: Callable[[], int] = lambda: MAX_WATERMARK,
        clock: Callable[[], float] = time.monotonic,
        scope_of: ScopeOf = first_member,
    ) -> None:
        self._ask = ask
        self._scope_of = scope_of
        self._max_drift = max_drift
        self._idle_timeout = idle_timeout
        self._others = others
        self._clock = clock
        self._pool = ThreadPoolExecutor(MOST_SCOPES, thread_name_prefix="bsrc-alignment")
        self._pending: dict[str, Future[Mapping[SplitId, RecordTime | None]]] = {}
        self._aligned: int | None = None
        self._last_seen: dict[SplitId, int] = {}
        self._read_since: dict[SplitId, float] = {}
        self._silent_since: dict[SplitId, float] = {}
        self._marks: Mapping[SplitId, int | None] = {}
        self._slowest: int | None = None
        self._is_idle = False
        self._heard = MAX_WATERMARK
        self._warned_at: dict[str, float] = {}
        self.unheard: frozenset[SplitId] = frozenset()
        """Splits of which the newest question has brought no times."""

    def cap(
        self, positions: Mapping[SplitId, int], ends: Mapping[SplitId, int]
    ) -> dict[SplitId, int]:
        """How far splits may be read now: at most to `ends`."""
        ends = {s: ends[s] for s in positions if s in ends}
        if len(self._last_seen) > FORGET * len(ends):
            self._last_seen = _within(self._last_seen, ends)  # splits that are gone
        self._note_idle(positions, ends)
        if all(positions[s] >= end for s, end in ends.items()):
            self._note_slowest({s: positions[s] for s in ends}, ends, {})
            return dict(ends)
        if self._aligned is None:
            self._aligned = self._slowest = self._begin(positions, ends)
        if self._aligned is None:
            return {s: min(end, positions[s]) for s, end in ends.items()}
        answers = self._following(ends, self._aligned)
        present = {s: positions[s] for s in self._present(ends, answers)}
        self._marks = watermarks(self._aligned, present, ends, answers)
        self._last_seen |= {s: record.time for s, record in answers.items() if record is not None}
        mark = self._note_slowest(present, ends, answers)
        self._heard = self._others()
        self._aligned = advance(self._aligned, mark, others=self._heard, max_drift=self._max_drift)
        # Asked again: the aligned time may have moved, and with it the first record that must wait.
        after = self._following(ends, self._aligned)
        self.unheard = frozenset(ends.keys() - after.keys())
        self._last_seen |= {s: record.time for s, record in after.items() if record is not None}
        return capped(ends, after)

    def report(self) -> dict[str, Any]:
        """For the query's progress: milliseconds since the epoch.

        `others` only while there is someone to wait for.
        """
        marks = {s: mark for s, mark in self._marks.items() if mark is not None}
        figures = {
            "alignedTo": self._aligned,
            "slowest": min(marks.values(), default=None),
            "idle": len(self._idle()),
        }
        if self._heard == MAX_WATERMARK:
            return figures
        return {**figures, "others": "unknown" if self._heard == MIN_WATERMARK else self._heard}

    @property
    def watermark(self) -> int:
        """How far this source is, for the others of its group.

        See `balanced_source.documents.alignment`.
        """
        if self._is_idle:
            return MAX_WATERMARK
        return MIN_WATERMARK if self._slowest is None else self._slowest

    def watermarks(self) -> Mapping[SplitId, int | None]:
        """How far in time each split was read when last looked at."""
        return self._marks

    def close(self) -> None:
        """End the worker threads."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _note_slowest(
        self,
        positions: Mapping[SplitId, int],
        ends: Mapping[SplitId, int],
        answers: Mapping[SplitId, Any],
    ) -> int | None:
        """The slowest split's time.

        While it cannot be told, the one before stays what others are told.
        """
        aligned = 0 if self._aligned is None else self._aligned
        mark = slowest(
            aligned, positions, ends, answers, last_seen=self._last_seen, idle=self._idle()
        )
        self._is_idle = mark == MAX_WATERMARK
        # An unknown time must not let the other sources of the group run ahead.
        if mark is not None and not self._is_idle:
            self._slowest = mark
        return mark

    def _begin(self, positions: Mapping[SplitId, int], ends: Mapping[SplitId, int]) -> int | None:
        """The time just before the earliest record that is next in any split, found by halving.

        A server finds positions of times, not times of positions. About forty questions, once per
        start.
        """
        low = dict.fromkeys(ends, -1)
        high = dict.fromkeys(ends, int(time.time() * 1000) + self._max_drift)
        while any(high[s] - low[s] > 1 for s in low):
            middle = {s: (low[s] + high[s]) // 2 for s in low}
            answers = self._records(middle)
            # With one cluster unknown the earliest record is unknown, and none may be read before
            # it. No one waits for a cluster that has been silent for too long, except a query that
            # ends by itself: it has no second chance.
            present = self._present(ends, answers) if self._idle_timeout else ends.keys()
            self.unheard = frozenset(ends.keys() - answers.keys())
            if not (present <= answers.keys() and answers):
                return None
            low, high = _within(low, answers), _within(high, answers)
            for split_id, record in answers.items():
                is_before = record is not None and record.offset <= positions[split_id]
                (low if is_before else high)[split_id] = middle[split_id]
        self._last_seen |= {s: mark for s, mark in low.items() if mark >= 0}
        # The first record may lie beyond the position, as in a compacted log. None is older than 0.
        return max(-1, min((low[s] for s in low if positions[s] < ends[s]), default=0) - 1)

    def _following(
        self, splits: Mapping[SplitId, int], aligned: int
    ) -> dict[SplitId, RecordTime | None]:
        return self._records(dict.fromkeys(splits, aligned + 1))

    def _records(self, millis: Mapping[SplitId, int]) -> dict[SplitId, RecordTime | None]:
        """Answers of the clusters that give one in time."""
        scopes: dict[str, dict[SplitId, int]] = {}
        for split_id, moment in millis.items():
            scopes.setdefault(self._scope_of(split_id), {})[split_id] = moment
        asked = []
        for scope, members in scopes.items():
            late = self._pending.get(scope)
            if late is None or late.done():
                self._pending[scope] = self._pool.submit(self._ask, scope, members)
                asked.append(self._pending[scope])
        done, _ = wait(asked, timeout=PATIENCE)
        answers: dict[SplitId, RecordTime | None] = {}
        for future in done:
            try:
                answers |= future.result()
            except DiscoveryError as error:
                self._warn(str(error))
        self._pending = {scope: one for scope, one in self._pending.items() if not one.done()}
        return answers

    def _warn(self, error: str) -> None:
        """Log an error once in a while: an idle query asks several times a second."""
        now = self._clock()
        known = {text: at for text, at in self._warned_at.items() if now - at < TELL_EVERY}
        if error not in known:
            log.warning("times of records unknown for now; these splits wait", error=error)
        self._warned_at = {error: now, **known}

    def _present(self, ends: Mapping[SplitId, int], answers: Mapping[SplitId, Any]) -> set[SplitId]:
        """Splits that count: of a cluster that does not answer only until it is idle, too."""
        now = self._clock()
        self._silent_since = {s: self._silent_since.get(s, now) for s in ends if s not in answers}
        # Not by the time alone: where no split is waited for, the timeout is 0.
        return {s for s in ends if s in answers or now - self._silent_since[s] < self._idle_timeout}

    def _note_idle(self, positions: Mapping[SplitId, int], ends: Mapping[SplitId, int]) -> None:
        now = self._clock()
        read = {s for s, end in ends.items() if positions[s] >= end}
        self._read_since = {s: self._read_since.get(s, now) for s in read}

    def _idle(self) -> set[SplitId]:
        now = self._clock()
        return {s for s, since in self._read_since.items() if now - since >= self._idle_timeout}


def _within(table: Mapping[SplitId, int], split_ids: Container[SplitId]) -> dict[SplitId, int]:
    return {split_id: value for split_id, value in table.items() if split_id in split_ids}
