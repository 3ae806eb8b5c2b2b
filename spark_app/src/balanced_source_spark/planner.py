"""Plans the micro-batches of a query, in the planning process.

Order of Spark's calls (measured on 4.2 and 4.3): fresh query `initialOffset`, `latestOffset`,
[offset logged], `partitions`, tasks, [commit logged], `latestOffset` …; after a restart with an
unfinished micro-batch `partitions` first, with the logged offsets. `latestOffset(start)` means that
everything up to `start` is delivered.
"""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, Final

from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit

from balanced_source.api import (
    Boundedness,
    SplitId,
)
from balanced_source.documents import stream_offset
from balanced_source.documents.assignment import Assignment
from balanced_source.documents.offset_codec import OffsetCodec
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.errors import ForeignCheckpointError
from balanced_source.host.ends import (
    Confirmed,
    Look,
    confirmed,
    look,
    unread_rests,
    with_confirmed,
)
from balanced_source.host.micro_batch import (
    advance,
    can_grow,
    close,
    is_new,
    reachable,
    within_stops,
)
from balanced_source.host.pacing import Pace, paced
from balanced_source_adapters.lazy_log import get_logger
from balanced_source_spark.channels.errors import ChannelError, NothingAssignedError
from balanced_source_spark.checkpoints import check_owner, check_splits
from balanced_source_spark.control import CONTROL
from balanced_source_spark.expected_splits import ExpectedSplits
from balanced_source_spark.options import Options
from balanced_source_spark.partition import ReaderPartition
from balanced_source_spark.planner_figures import PlannerFigures
from balanced_source_spark.short_splits import tell_absent, unheard, without_times
from balanced_source_spark.why_nothing import ends_itself

_PULL: Final = 0.01
"""Seconds until a query that ends by itself looks again for splits that its readers have asked for.
"""

_CLOSED: Final = (
    "_hooks", "_aligner", "_ends", "_control", "_samples", "_runtime", "_lag_watch",
)  # fmt: skip
"""Parts that are closed, the last one first."""

_RETRY: Final = 0.2
"""Seconds until servers that did not answer are asked again, where waiting is unavoidable."""


log = get_logger(__name__)


class StreamPlanner(PlannerFigures):
    """What Spark asks a stream reader for, without reading; its methods have the names of Spark's.

    Args:
        options: of the query.
    """

    def __init__(self, options: Options) -> None:
        super().__init__()
        self._options = options
        self._targets: dict[SplitId, int] | None = None
        self._expected = ExpectedSplits(host=options.host, timeout=options.start_timeout)
        self._is_single = False
        self._is_ending = False
        self._is_pulling = False
        self._has_closed = False
        self._is_checked = False
        self._base = StreamOffset()
        self._confirmed: dict[SplitId, Confirmed] = {}
        self._codec = OffsetCodec()
        self._hooks = self._made_hooks()
        for note in options.notes:
            log.warning(note)

    def initialOffset(self) -> dict[str, Any]:
        return stream_offset.to_json(StreamOffset())

    def prepareForTriggerAvailableNow(self) -> None:
        """Note what there is to read.

        Under an operator that waits until the driver has registered, because it may have to list
        the splits itself. So it does where start positions are refused, for example because
        retention has passed them: a query that continues does not need them.
        """
        # Whether the query continues is known only with the first offset that Spark passes.
        self._is_ending = self._options.source is not None or not self._has_taken_targets()

    def _has_taken_targets(self) -> bool:
        try:
            self._take_targets()
        except NothingAssignedError:
            return False
        return True

    def _take_targets(self) -> None:
        assignment = self._runtime.first_assignment(timeout=self._options.start_timeout)
        # Ends of splits that readers ask for later cannot be known now: such a query ends with the
        # source.
        if not self._begins_pulling(assignment):
            known = self._ends.get_all(assignment.owners, timeout=self._options.start_timeout)
            self._targets = {split_id: answer.end for split_id, answer in known.items()}
            tell_absent(assignment.owners.keys() - known.keys())

    def _begins_pulling(self, assignment: Assignment) -> bool:
        """Whether the readers of this query, which ends by itself, ask for splits.

        It ends with the source then.

        Raises:
            InvalidSpecError: it could not tell when that is.
        """
        if not assignment.look_ahead:
            self._expected.expect(assignment)
            return False
        source = self._options.embedded
        # trigger(once=True) plans one micro-batch, in which no split that is asked for could
        # arrive.
        if self._is_single or (
            source is not None and source.boundedness is not Boundedness.BOUNDED
        ):
            raise ends_itself(self._options.connector)
        self._is_pulling, self._is_ending = True, False
        return True

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Return the end of the next micro-batch, or `start` while there is nothing to read.

        A query that ends by itself has ended then. So where readers ask for splits, it waits until
        there are some.
        """
        with self._turn:
            return self._awaited_offset(start, limit)

    def _awaited_offset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        found = self._next_offset(start, limit)
        moved = time.monotonic()
        while self._is_pulling and found == start and not self._is_over(self._codec.decode(start)):
            if time.monotonic() - moved > self._options.start_timeout:
                # To end silently would look as if everything had been read.
                raise self._stalled()
            time.sleep(_PULL)
            found = self._next_offset(start, limit)
        return found

    def _is_over(self, logged: StreamOffset) -> bool:
        """Whether everything that there will ever be is read, up to the newest logged offset."""
        return self._runtime.is_finished(logged)

    def _stalled(self) -> ChannelError:
        why = (
            "; ".join(problem.message for problem in self._runtime.problems)
            or "no further splits were assigned"
        )
        return ChannelError(
            f"{why}. The query waited {self._options.start_timeout:.0f} s: option"
            " startTimeoutSeconds"
        )

    def _next_offset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        begin = self._asked(start)
        self._note_skipped()
        if isinstance(limit, ReadAllAvailable) and self._targets is None and not self._is_ending:
            self._is_single = True  # trigger(once=True), see the stream reader
            self.prepareForTriggerAvailableNow()
            self.check_named()
        base = self._based_on(begin)
        if base is None:
            return start
        self._tell_left(begin, base)
        if self._targets:
            self._targets = within_stops(self._targets, base)
        base, seen = self._looked(base)
        ends = seen.ends
        end = self._advanced(base, seen)
        deadline = time.monotonic() + self._options.start_timeout
        while (
            self._is_short(end) and end.positions == base.positions and time.monotonic() < deadline
        ):
            time.sleep(_RETRY)  # what does not move ends a query with AvailableNow
            end = self._advanced(base, seen)
        self._check_times(base, end)
        end = self._named(end)
        self._note(begin, end, ends, firsts=seen.firsts)
        # Another epoch is logged too, although nothing is read: that acknowledges it.
        if is_new(begin, end):
            return self._signed(end)
        if self._is_pulling:
            return start
        if (closing := self._closing(begin)) is not None:
            return self._signed(closing)
        if self._targets is not None:
            self.check_named()  # all that there is was read
        return start

    def check_named(self) -> None:
        """See `HostRuntime.check_named`."""
        self._runtime.check_named()

    def _tell_left(self, begin: StreamOffset, base: StreamOffset) -> None:
        """Tell of splits that leave with records that were there and were not read.

        Only where this driver assigns by itself: what leaves there was deleted.
        """
        if base.epoch == begin.epoch or self._options.embedded is None:
            return
        left = begin.positions.keys() - base.positions.keys()
        if rests := unread_rests(begin, self._ends.known, left):
            self._hooks.note_look(begin, Look(deleted=rests))

    def _with_rests(self, base: StreamOffset, seen: Look) -> Look:
        """What hooks are told: also of deleted splits that discovery has not noticed yet."""
        if self._options.embedded is None or not self._ends.deleted:
            return seen
        gone = self._ends.deleted.intersection(base.positions)
        rests = unread_rests(base, self._ends.known, gone)
        return replace(seen, deleted={**seen.deleted, **rests}) if rests else seen

    def _based_on(self, delivered: StreamOffset) -> StreamOffset | None:
        """Where the next micro-batch begins, with everything up to `delivered` committed.

        None: not yet.
        """
        # First: Spark asks for the next micro-batch when the one before is committed, not earlier.
        self._runtime.committed(delivered, self._progress_after(delivered))
        self._hooks.note_delivered(delivered)
        if self._is_ending and self._targets is None:
            self._take_targets()
        if self._is_pulling:
            return self._runtime.base()
        if self._targets is not None and not self._runtime.wait_until_assigned(
            timeout=self._options.start_timeout
        ):
            raise self._runtime.unassigned(self._options.start_timeout)
        # A first micro-batch without splits would be all that Spark's checkpoint knows of the
        # source.
        if self._targets is None and not delivered.epoch:
            self._runtime.wait_until_begun(timeout=self._options.start_timeout)
        return self._expected.base(self._runtime, delivered)

    def _signed(self, end: StreamOffset) -> dict[str, Any]:
        return self._codec.encode(self._named(end))

    def _named(self, end: StreamOffset) -> StreamOffset:
        # The offset names its source, so a checkpoint of another one is refused at the next start.
        owner = self._options.checkpoint_owner
        return end if end.source == owner else replace(end, source=owner)

    def _asked(self, start: dict[str, Any]) -> StreamOffset:
        """The offset that Spark asks for the next micro-batch with.

        The number of readers may have been changed.
        """
        begin = self._own(start)
        if (control := self.__dict__.get("_control")) is not None:
            control.look()
        return begin

    def _own(self, offset: dict[str, Any]) -> StreamOffset:
        """The offset, if it is of this query's source.

        Raises:
            ForeignCheckpointError: it is of another one.
        """
        found = self._codec.decode(offset)
        check_owner(
            found, owner=self._options.checkpoint_owner, accepted=self._options.accept_checkpoint_of
        )
        self._check_shape(found)
        if not self._is_checked:
            self._is_checked = True
            check_splits(found, self._options.embedded)
        return found

    def _check_shape(self, found: StreamOffset) -> None:
        """Raise ForeignCheckpointError for an offset whose positions mean something else."""
        if found.journal is not None:
            raise ForeignCheckpointError(
                "the Spark checkpoint was written with a journal, but connector"
                f" {self._options.connector!r} reads without one: give the query another"
                " checkpointLocation"
            )

    def _is_short(self, end: StreamOffset) -> bool:
        """Whether a query that ends by itself has not reached what was there at its start."""
        return self._alignment is not None and bool(self._short(end))

    def _short(self, end: StreamOffset) -> list[SplitId]:
        targets = self._targets or {}
        return [s for s, to in targets.items() if (end.positions.get(s) or 0) < to]

    def _check_times(self, base: StreamOffset, end: StreamOffset) -> None:
        """Check that a query that ends by itself does not end because times are unknown.

        Raises:
            DiscoveryError: it would, without a word, and with less than was there.
        """
        aligner = self._aligner
        # Most queries are not aligned, and an idle one comes here a hundred times a second.
        if aligner is None or end.positions != base.positions:
            return
        if untimed := aligner.unheard.intersection(self._short(end)):
            raise without_times(untimed, self._options.start_timeout)

    def _closing(self, begin: StreamOffset) -> StreamOffset | None:
        """Returns the closing offset once everything is read and reported.

        Its progress ends the query.

        Each process says so once, also when a former one did: the query that it ends is another
        one.
        """
        if self._has_closed or self._targets is not None or not self._runtime.is_finished(begin):
            return None
        self._has_closed = True
        return close(begin)

    @property
    def is_pulling(self) -> bool:
        """Whether the query ends by itself and needs several micro-batches to ask for splits."""
        return self._is_pulling

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[ReaderPartition]:
        finish = self._own(end)
        self._has_closed |= finish.closings > 0
        begin = self._codec.decode(start)
        plans = self._plan(begin, finish)
        # A replay comes before the first assignment: its readers need settings to reach the source.
        settings = self._runtime.settings(timeout=self._options.start_timeout) if plans else {}
        self._hooks.note_planned(plans, settings)
        # Spark has logged the end before it asks for partitions, so its epoch is acknowledged now.
        records = sum((r.end or 0) - (r.start or 0) for p in plans for r in p.ranges)
        self._runtime.planned(finish, begin=begin, records=records)
        self._gate.note(len(finish.readers))
        owned, samples = Counter(finish.owners.values()), self._samples.target
        return [
            ReaderPartition(
                subtask_id=p.subtask_id,
                ranges=p.ranges,
                # All splits that the reader owns: its fetch memory is shared among those, not among
                # the ranges.
                splits=max(1, owned[p.subtask_id]),
                settings=settings,
                samples=samples,
            )
            for p in plans
        ]

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """Return what the query's progress shows as `latestOffset`.

        Figures, and the current problems.
        """
        problems = [problem.message for problem in self._runtime.problems]
        control = {CONTROL: str(self._control.folder)} if self._control is not None else {}
        return {**self._shown, **control, **({"problems": problems} if problems else {})}

    def commit(self, end: dict[str, Any]) -> None:
        """Take note that Spark is done with everything up to `end`.

        It says so when it has logged the next offset.
        """

    def stop(self) -> None:
        """Close what was made.

        A part that fails to close keeps no other one open, and is told afterwards.
        """
        with ExitStack() as parts:
            for name in _CLOSED:
                if (part := self.__dict__.get(name)) is not None:
                    parts.callback(part.close)

    def _looked(self, base: StreamOffset) -> tuple[StreamOffset, Look]:
        """Returns what servers say of the splits of `base`, and `base` with what they confirmed.

        A query that ends by itself waits for those that `Look.awaited` names.
        """
        deadline = time.monotonic() + self._options.start_timeout
        while True:
            # What servers confirmed before is kept, so that each log is checked once and not at
            # each look.
            self._base = base = with_confirmed(base, self._confirmed)
            known = self._ends.get(base.positions)
            self._confirmed = confirmed(base, known, self._confirmed)
            seen = look(base, known, deleted=self._ends.deleted)
            self._short_splits.note(base, seen)
            self._hooks.note_look(base, self._with_rests(base, seen))
            if self._targets is None or not (
                awaited := seen.awaited(
                    base, self._targets, heard=known.keys(), mute=self._ends.mute
                )
            ):
                return base, seen
            if time.monotonic() > deadline:
                raise unheard(base, seen, awaited, self._options.start_timeout)
            time.sleep(_RETRY)

    def _advanced(self, base: StreamOffset, seen: Look) -> StreamOffset:
        # A query that ends by itself would end without the records of a silent split: it waits, and
        # fails in words.
        held: Mapping[SplitId, int] = {s: p or 0 for s, p in base.positions.items()}
        may_skip = bool(seen.deleted or seen.firsts) and self._hooks.may_skip()
        # Tasks skip what is deleted, after another look of their own.
        skipped = seen.deleted if may_skip else {}
        silent = self._ends.silent - skipped.keys()
        ends = {**seen.ends, **skipped} if skipped else seen.ends
        free = reachable(base, ends, targets=self._targets, silent=silent)
        if self._is_single:  # there is no second micro-batch for what limits or the alignment leave
            return self._ended(base, seen, Pace(free))
        if may_skip:
            held = seen.behind_deleted(held, free)
        positions = self._limited(base, held, free)
        return self._ended(base, seen, self._paced(base, positions))

    def _limited(
        self, base: StreamOffset, held: Mapping[SplitId, int], free: Mapping[SplitId, int]
    ) -> Mapping[SplitId, int]:
        """How far limits and the alignment let splits be read.

        Nothing is waited for that never comes: where every split is at its stop, too few records
        are all that there are. What waits for slower splits is available all the same, or limits
        and the alignment would wait for each other.
        """
        aligned = self._aligned(held, free)
        may_wait = not self._ends_by_itself and can_grow(base, free)
        if may_wait and aligned not in (free, held):
            may_wait = False
            if self._hooks.admit(held, free, may_wait=True) == held:
                return held
        return self._hooks.admit(held, aligned, may_wait=may_wait)

    def _aligned(
        self, held: Mapping[SplitId, int], free: Mapping[SplitId, int]
    ) -> Mapping[SplitId, int]:
        if self._aligner is None:
            return free
        admitted = self._aligner.cap(held, free)
        # Never behind where reading stands: a position that goes back would read records twice.
        reachable = {s: max(p, admitted.get(s, 0)) for s, p in held.items()}
        self._admitted = sum(to - held[s] for s, to in reachable.items())
        return reachable

    def _paced(self, base: StreamOffset, positions: Mapping[SplitId, int]) -> Pace:
        """Where readers ask for splits, a slow one reads as much as it can while the others read.

        Elsewhere each reader has to read what it owns, however slow it is.
        """
        assignment = self._runtime.newest_assignment(timeout=0.0)
        if assignment is None or not assignment.look_ahead or "_samples" not in self.__dict__:
            return Pace(positions)
        self._samples.take()
        return paced(
            base,
            positions,
            self._samples.speeds,
            no_more_splits=assignment.no_more_splits,
            asked_for=self._hooks.asked_for,
            may_cut=self._hooks.may_cut,
        )

    def _ended(self, base: StreamOffset, seen: Look, pace: Pace) -> StreamOffset:
        asked = self._options.max_records_per_reader
        return advance(
            base,
            pace.positions,
            terms=seen.terms,
            term_ends=seen.term_ends,
            # Without the user's consent a split whose log was cut stays where it is.
            cuts=seen.cuts if seen.cuts and self._hooks.may_skip() else {},
            max_records_per_reader=pace.cut_above if asked is None else asked,
        )
