"""Plans micro-batches whose ends are not known.

Tasks seal them in a journal, and the next planning folds them.

The order of Spark's calls is that of `balanced_source_spark.planner`. What `partitions` returns
depends on the end offset alone. It asks the journal only before a process replays a micro-batch:
tasks would seal again, and elsewhere, what an older copy of the journal lacks.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Final, TypeVar

from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit

from balanced_source.api import Problem, SplitId
from balanced_source.documents.assignment import Assignment
from balanced_source.documents.journal import FetchLimits, JournalPoint, JournalRecord
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.errors import (
    DiscoveryError,
    ForeignCheckpointError,
    ForeignJournalError,
    InvalidSpecError,
    JournalError,
)
from balanced_source.host.ends import Look, look
from balanced_source.host.journaling import (
    caught_up,
    delivered,
    has_progress,
    millis_behind,
    next_end,
    shares,
)
from balanced_source.host.observation import Observation, total
from balanced_source.host.pausing import PauseAligner
from balanced_source.reasons import Reason
from balanced_source_adapters.lazy_log import get_logger
from balanced_source_spark.contract.readers import ReaderHooks, ReadersHalf
from balanced_source_spark.journal.folding import Folding
from balanced_source_spark.journal.gaps import GapCounter
from balanced_source_spark.journal.mismatches import lost, older, stuck, too_old
from balanced_source_spark.journal.offset_log import CommitOrder, check_logged
from balanced_source_spark.journal_options import JournalOptions
from balanced_source_spark.options import Options
from balanced_source_spark.partition import ReaderPartition
from balanced_source_spark.planner import StreamPlanner

T = TypeVar("T")

log = get_logger(__name__)

CHECKED: Final = 20
"""Micro-batches of a process that are looked up in the offset log: in an object store that costs
two requests."""

_RETRY: Final = 0.2
"""Seconds until the journal is asked again, where waiting is unavoidable."""

_UNFINISHED: Final = (
    "the last micro-batch of the Spark checkpoint was planned without a journal, and is not"
    " committed. Start the query once with the connector's former release, so that it finishes this"
    " micro-batch, then upgrade"
)

_AT_LEAST_ONCE: Final = (
    "connector {} cannot read a split again, so delivery is at least once: after a failure, records"
    " come again or are gone. Use a sink that recognises records by a key"
)

_OLDER: Final = ("journal", "older")
"""Key of the problem of a checkpoint that is older than its journal."""


class JournalPlanner(StreamPlanner):
    """See the module.

    Args:
        options: of the query, with those of a journal.
    """

    _hooks: ReaderHooks

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        assert options.journal is not None  # noqa: S101 - the caller has looked
        self._journal: JournalOptions = options.journal
        self._folding = Folding(
            self._journal.store,
            min_batches=self._journal.min_batches,
            tell=lambda problem: self._set_problem(("journal",), problem),
        )
        self._name = self._made = ""
        self._is_found = False
        self._folded: tuple[tuple[str, int], StreamOffset] | None = None
        self._is_active = True
        self._gaps = GapCounter()
        self._planned_at = float("-inf")
        self._planned: JournalPoint | None = None
        self._moved_at = self._begun_at = time.monotonic()
        self._is_overdue = False
        self._done: frozenset[SplitId] = frozenset()
        self._unchecked = CHECKED
        self._order = CommitOrder()

    def _take_targets(self) -> None:
        """The targets are the ends at this time, or for a source that does not know any.

        To be caught up once.
        """
        self._begun_at = time.monotonic()
        if self._hooks.knows_ends:
            super()._take_targets()
        elif not self._begins_pulling(
            self._runtime.first_assignment(timeout=self._options.start_timeout)
        ):
            self._targets = {}

    def _begins_pulling(self, assignment: Assignment) -> bool:
        if assignment.look_ahead and self._journal.is_batch:
            # All micro-batches are planned before the first is read, and where it ends is unknown
            # until then.
            raise InvalidSpecError(
                f"a batch query cannot read connector {self._options.connector!r}: its readers ask"
                " for splits while they read, and the ends of the splits are unknown. Use a stream"
                " with trigger AvailableNow",
                field="options.connector",
            )
        return super()._begins_pulling(assignment)

    def _is_over(self, logged: StreamOffset) -> bool:
        delivered = self._delivered(logged)
        return delivered is not None and super()._is_over(delivered)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        # Remembered: a replay plans ends that this process has not offered, and is not checked.
        found = super().latestOffset(start, limit)
        self._order.offered(found)
        return found

    def commit(self, end: dict[str, Any]) -> None:
        self._order.committed(end)

    def _next_offset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        logged = self._asked(start)
        self._tell_guarantee()
        if isinstance(limit, ReadAllAvailable):  # trigger(once=True) or a batch query
            self._is_single = True
            if self._targets is None and not self._is_ending:
                self.prepareForTriggerAvailableNow()
        # The logged offset has only the starts: what was read is in the journal.
        begin = self._delivered(logged)
        base = self._based_on(begin) if begin is not None else None
        point = self._next_point(base.journal) if base is not None else None
        if begin is None or base is None or point is None:
            return start
        end = self._aligned_end(next_end(base, replace(point, held=self._unreadable(base))))
        if self._is_due(begin, end):
            # Only what this process has planned tells whether the readers are caught up now.
            self._planned, self._planned_at = end.journal, time.monotonic()
            return self._signed(end)
        if self._is_pulling:
            return start
        closing = self._closing(begin)
        return start if closing is None else self._signed(closing)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[ReaderPartition]:
        """Return one partition per reader; depends on `end` alone."""
        finish = self._own(end)
        # without splits it reads nothing: Spark's first offset
        if finish.journal is None and finish.owners:
            raise ForeignCheckpointError(_UNFINISHED)
        # Before any task can seal a range under this number.
        self._check_logged(end)
        self._order.check(start, end, is_first=start == self.initialOffset())
        self._check_journal(finish)
        self._has_closed |= finish.closings > 0
        planned = shares(finish)
        timeout = self._options.start_timeout
        settings = self._runtime.settings(timeout=timeout) if planned else {}
        # A replay of a query that assigns by itself is planned before its first assignment.
        ends = self._runtime.newest_assignment(timeout=0.0) or self._options.embedded
        may_end = ends is None or ends.has_ending_splits is not False
        # Spark has logged the end before it asks for partitions, so its epoch is acknowledged now.
        self._runtime.planned(finish)
        self._gate.note(finish.parallelism)
        return [
            ReaderPartition(
                subtask_id=share.key.reader,
                ranges=(),
                splits=max(1, len(share.starts)),
                settings=settings,
                share=share,
                may_end=may_end,
                samples=self._samples.target,
            )
            for share in planned
        ]

    def _check_journal(self, finish: StreamOffset) -> None:
        """Check the journal before the first replay of a process: no planning has asked for it.

        Raises:
            ForeignJournalError: see `_find`.
            JournalError: it does not answer.
        """
        if finish.journal is not None and not finish.closings and not self._is_found:
            self._find(finish.journal, is_needed=True)

    def _tell_guarantee(self) -> None:
        if isinstance(self._half, ReadersHalf) and not self._half.is_replayable:
            problem = Problem(
                reason=Reason.AT_LEAST_ONCE, message=_AT_LEAST_ONCE.format(self._options.connector)
            )
            self._set_problem(("guarantee",), problem)

    def _check_logged(self, end: Mapping[str, Any]) -> None:
        """Check the first micro-batches of a process: later ones are logged in the same way."""
        if self._unchecked > 0:
            self._unchecked -= 1
            check_logged(self._journal.store.newest_offsets(), end)

    def stop(self) -> None:
        """See `StreamPlanner.stop`."""
        self._folding.stop()
        super().stop()

    def _check_shape(self, found: StreamOffset) -> None:
        """A checkpoint without a journal gets one.

        Its positions are where the first micro-batch begins.
        """

    # --- what the last micro-batch delivered ------------------------------------------------------

    def _delivered(self, logged: StreamOffset) -> StreamOffset | None:
        """The offset behind everything that was delivered.

        None while the journal cannot be asked.
        """
        point = logged.journal
        if point is None:
            return logged
        # Once per process: a journal that is elsewhere must not look like one without records.
        if not self._is_found and not self._find(point):
            return None
        # A closing micro-batch reads nothing, so there is nothing to fold.
        if logged.closings:
            return logged
        key = (point.journal, point.number)
        # Spark asks again and again while nothing is new, and the journal may be an object store.
        if self._folded is not None and self._folded[0] == key:
            return self._folded[1]
        records = self._patiently(lambda: self._folding.close(logged))
        if records is None:
            return None
        found = delivered(logged, records)
        self._folded = key, found
        self._note_folded(logged, found, records)
        return found

    def _note_folded(
        self, logged: StreamOffset, found: StreamOffset, records: Sequence[JournalRecord]
    ) -> None:
        self._is_active = has_progress(records)
        self._gaps.note(records)
        if self._pauses is not None:
            self._pauses.note(logged, records, now=time.monotonic())
        if found.positions != logged.positions:
            self._moved_at = time.monotonic()
        if self._planned is not None and logged.journal == self._planned:
            self._done |= caught_up(logged, records)
            if not self._is_active:
                self._set_problem(_OLDER, None)
        behind = millis_behind(logged, records, is_continued=self._hooks.is_continued)
        self._note(logged, found, self._ends_now(found).ends, behind, is_read=True)

    def _hook_numbers(self) -> Mapping[str, int]:
        return {**super()._hook_numbers(), **self._gaps.numbers()}

    def _find(self, point: JournalPoint, *, is_needed: bool = False) -> bool:
        """Find the journal of the checkpoint, once per process.

        Raises:
            ForeignJournalError: it is not there, or lacks records that the checkpoint needs.
            JournalError: it does not answer, and is needed now.
        """
        newest = self._patiently(lambda: self._folding.find(point.journal), is_needed=is_needed)
        if newest is None:
            return False
        if newest < point.number - 1:  # each micro-batch is closed before the next one is planned
            raise ForeignJournalError(lost(point, newest))
        self._is_found = True
        # The checkpoint is an older copy: these records are of micro-batches that it will plan
        # again.
        if newest > point.number:
            self._begin_anew(point, newest)
        return True

    def _begin_anew(self, point: JournalPoint, newest: int) -> None:
        """Records of micro-batches unknown to the checkpoint are of another life of the query.

        Raises:
            ForeignJournalError: the records of the checkpoint's last micro-batch were deleted
                since.
        """
        # The records of the checkpoint's last micro-batch are deleted: where it ended is unknown.
        if newest - point.number >= self._journal.min_batches:
            raise ForeignJournalError(too_old(point, newest))
        self._name = self._journal.new_name()
        problem = Problem(reason=Reason.CHECKPOINT_OLDER, message=older(point, newest))
        self._set_problem(_OLDER, problem)

    def _patiently(self, question: Callable[[], T | None], *, is_needed: bool = False) -> T | None:
        """Ask; a query that ends by itself asks until there is an answer, and fails in words."""
        deadline = time.monotonic() + self._options.start_timeout
        waits = is_needed or self._is_ending or self._targets is not None
        while (answer := question()) is None and waits:
            if time.monotonic() > deadline:
                raise JournalError(self._folding.complaint)
            time.sleep(_RETRY)
        return answer

    # --- the next micro-batch ---------------------------------------------------------------------

    def _next_point(self, former: JournalPoint | None) -> JournalPoint | None:
        """The point of the next micro-batch; None while its journal cannot be made."""
        if former is not None and self._name in ("", former.journal):
            journal, number = former.journal, former.number + 1
        elif self._is_made():
            journal, number = self._name, 1
        else:
            return None
        limits = self._journal.limits
        if self._is_single:  # there is no second micro-batch for what a limit leaves
            limits = FetchLimits(wait_millis=limits.wait_millis, max_millis=self._most_millis())
        targets = self._targets if self._hooks.knows_ends else None
        return JournalPoint(journal=journal, number=number, limits=limits, targets=targets)

    def _is_made(self) -> bool:
        """Make the journal of this query, unless it is there; whether it is there now."""
        self._name = self._name or self._journal.new_name()
        # Made before it is logged: a task that finds no marker fails.
        if self._made != self._name and not self._patiently(
            lambda: self._folding.create(self._name) or None
        ):
            return False
        self._made, self._is_found = self._name, True
        return True

    def _unreadable(self, base: StreamOffset) -> frozenset[SplitId]:
        """Return the splits whose ids others have now, and those that are gone; tell of them.

        Reading on at their positions would deliver records of other splits.
        """
        if not self._hooks.knows_ends:
            return frozenset()
        # All of them, as elsewhere: other splits each time would be sorted by their scopes again.
        known = self._ends.get(base.positions)
        finished = base.journal.finished if base.journal is not None else frozenset()
        # Nothing more is read of them. Those that were held before have to be checked again.
        if finished:
            left = {s: p for s, p in base.positions.items() if s not in finished}
            base = replace(base, positions=left)
        seen = look(base, known, deleted=self._ends.deleted)
        self._short_splits.note(base, seen)
        self._hooks.note_look(base, seen)
        return seen.recreated | seen.deleted.keys()

    def _aligned_end(self, end: StreamOffset) -> StreamOffset:
        """The end with what waits for slower splits, where splits are aligned."""
        # There is no second micro-batch for what an alignment leaves.
        if self._pauses is None or end.journal is None or self._is_single:
            return end
        now, left = time.monotonic(), _left(end)
        if self._hooks.knows_ends:
            self._pauses.note_read(self._read_to_end(end, left), now=now)
        pause = self._pauses.pause(left, others=self._others(), now=now)
        self._note_alignment()
        return replace(end, journal=replace(end.journal, pause=pause))

    def _read_to_end(self, end: StreamOffset, left: Sequence[SplitId]) -> list[SplitId]:
        """Return the splits that stand where they end now, as far as servers have said."""
        known, silent = self._ends.get(end.positions), self._ends.silent
        return [
            s
            for s in left
            if s in known and s not in silent and known[s].end <= (end.positions[s] or 0)
        ]

    @property
    def _alignment(self) -> PauseAligner | None:
        return self._pauses

    def _admitted_records(self, seen: Observation) -> int | None:
        if self._pauses is None:
            return None
        # Up to where a split that does not wait may be read is known only when it is read.
        ahead = self._pauses.ahead
        return total(lag for split_id, lag in seen.lags.items() if split_id not in ahead)

    @cached_property
    def _pauses(self) -> PauseAligner | None:
        asked = self._options.alignment
        if asked is None:
            return None
        return PauseAligner(max_drift=asked.max_drift, idle_timeout=self._idle_timeout(asked))

    def _is_due(self, begin: StreamOffset, end: StreamOffset) -> bool:
        # A new epoch is logged although nothing may be there to read: that acknowledges it.
        if end.epoch != begin.epoch:
            return True
        if self._targets is not None:
            return not self._is_complete(end, self._targets)
        # Without known ends only a micro-batch can find out whether there is anything.
        is_poll_due = time.monotonic() - self._planned_at >= self._journal.poll_interval
        if not (self._is_active or is_poll_due):
            return False
        return self._may_have_more(end) and bool(shares(end))

    def _is_complete(self, end: StreamOffset, targets: Mapping[SplitId, int]) -> bool:
        """Whether a query that ends by itself has read what it was to read.

        Raises:
            DiscoveryError: nothing moves, and there is something left.
        """
        left = _left(end)
        if not self._hooks.knows_ends:
            return self._done.issuperset(left) or self._is_time_over(left)
        short = [s for s in left if (end.positions[s] or 0) < targets.get(s, 0)]
        if short and time.monotonic() - self._moved_at > self._options.start_timeout:
            raise DiscoveryError(stuck(short[0], end, targets, self._options.start_timeout))
        return not short

    def _most_millis(self) -> int | None:
        """How long the only micro-batch of a query may fetch."""
        if self._hooks.knows_ends or self._journal.end_after is None:
            return None
        return round(self._journal.end_after * 1000)

    def _is_time_over(self, left: Sequence[SplitId]) -> bool:
        """Whether the query ends without being caught up, because its option says so."""
        asked = self._journal.end_after
        if asked is None or time.monotonic() - self._begun_at < asked:
            return False
        if not self._is_overdue:
            log.warning(
                "the query ends as option endAfter says: the next run reads what is left",
                splits=len(set(left) - self._done),
            )
        self._is_overdue = True
        return True

    def _may_have_more(self, end: StreamOffset) -> bool:
        """Whether anything can be read: yes, unless the source knows its ends and says no."""
        if not self._hooks.knows_ends or end.journal is None:
            return True
        known, silent = self._ends.get(end.positions), self._ends.silent
        left = _left(end)
        # An unknown end may hide records: a micro-batch in vain costs less than one that never
        # comes.
        if any(s not in known or s in silent for s in left):
            return True
        return any(known[s].end > (end.positions[s] or 0) for s in left)

    def _ends_now(self, found: StreamOffset, *, patience: float | None = None) -> Look:
        return super()._ends_now(found, patience=patience) if self._hooks.knows_ends else Look()


def _left(end: StreamOffset) -> list[SplitId]:
    """Return the splits that are to be read on."""
    left_out = end.journal.left_out if end.journal is not None else frozenset()
    return [s for s in end.positions if s not in left_out]
