"""Plans the micro-batches of a query, in the planning process.

Order of Spark's calls (measured on 4.2 and 4.3): fresh query `initialOffset`, `latestOffset`,
[offset logged], `partitions`, tasks, [commit logged], `latestOffset` …; after a restart with an
unfinished micro-batch `partitions` first, with the logged offsets. `latestOffset(start)` means that
everything up to `start` is delivered.
"""

import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit

from balanced_source.api import (
    MAX_WATERMARK,
    Boundedness,
    Problem,
    ProblemKey,
    SourceEvent,
    SplitId,
)
from balanced_source.documents import stream_offset
from balanced_source.documents.alignment import SourceWatermark
from balanced_source.documents.assignment import Assignment
from balanced_source.documents.report import MILLIS_BEHIND, UNREAD
from balanced_source.documents.storage import FIRST_HOST
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.errors import (
    ContractViolationError,
    DiscoveryError,
    ForeignCheckpointError,
    InvalidSpecError,
)
from balanced_source.host import plan
from balanced_source.host.alignment import RecordTime
from balanced_source.host.ends import (
    Confirmed,
    Look,
    SplitEnd,
    confirmed,
    look,
    marks,
    with_confirmed,
)
from balanced_source.host.micro_batch import advance, close, is_new, reachable
from balanced_source.host.observation import observe
from balanced_source_adapters.connectors import installed
from balanced_source_adapters.lazy_log import get_logger
from balanced_source_spark.aligner import Aligner
from balanced_source_spark.channels.channel import AssignmentChannel, Rescalable
from balanced_source_spark.channels.errors import ChannelError
from balanced_source_spark.channels.factory import open_channel
from balanced_source_spark.checkpoints import check_owner
from balanced_source_spark.contract.half import AnyHalf, half_of
from balanced_source_spark.contract.hooks import NO_SETTINGS, PlannerContext, PlannerHooks
from balanced_source_spark.control import CONTROL, Control
from balanced_source_spark.driver_calls import DriverCalls
from balanced_source_spark.ends import Ends, Tell
from balanced_source_spark.executors import AdoptionGate, Board
from balanced_source_spark.group_alignment import GroupAlignment
from balanced_source_spark.host_runtime import HostRuntime, Progress
from balanced_source_spark.options import Options, query_of
from balanced_source_spark.partition import ReaderPartition
from balanced_source_spark.why_nothing import ends_itself

if TYPE_CHECKING:
    from balanced_source_spark.driver_metrics import DriverMetrics

_PULL: Final = 0.01
"""Seconds until a query that ends by itself looks again for splits that its readers have asked for.
"""

_RETRY: Final = 0.2
"""Seconds until brokers that did not answer are asked again, where waiting is unavoidable."""

_TELL_IDLE: Final = 1.0
"""Seconds between two observations while nothing is read."""


log = get_logger(__name__)


class StreamPlanner:
    """What Spark asks a stream reader for, but for reading; its methods have the names of Spark's.

    Args:
        options: of the query.
    """

    def __init__(self, options: Options) -> None:
        self._options = options
        self._targets: dict[SplitId, int] | None = None
        self._is_single = False
        self._is_ending = False
        self._is_pulling = False
        self._has_closed = False
        self._has_wrong_numbers = False
        self._base = StreamOffset()
        self._confirmed: dict[SplitId, Confirmed] = {}
        self._shown: dict[str, Any] = {}
        self._shown_at = float("-inf")
        self._hooks = self._made_hooks()
        for note in options.notes:
            log.warning(note)

    def _made_hooks(self) -> PlannerHooks:
        context = PlannerContext(
            query=query_of(self._options),
            settings=self._settings,
            known_settings=self._known_settings,
            set_problem=self._set_problem,
            check_problems=self._check_problems,
            send_source_event=self._send_event,
        )
        return self._half.hooks(context)

    @cached_property
    def _half(self) -> AnyHalf[Any]:
        return half_of(self._options.connector)

    @cached_property
    def _channel(self) -> AssignmentChannel:
        return open_channel(self._options)

    @cached_property
    def _control(self) -> Control | None:
        """Only streams have one: it is made when the first progress is."""
        return Control(self._channel.rescale) if isinstance(self._channel, Rescalable) else None

    @cached_property
    def _runtime(self) -> HostRuntime:
        return HostRuntime(
            self._channel,
            host=self._options.host,
            gate=self._gate,
            with_former=self._hooks.with_former,
            on_event=self._hooks.handle_source_event,
            calls=_driver_calls(self._options),
        )

    @cached_property
    def _gate(self) -> AdoptionGate:
        folder = self._options.executors_dir
        return AdoptionGate(
            Board(folder) if folder is not None else None, patience=self._options.executor_patience
        )

    @cached_property
    def _ends(self) -> Ends:
        tell: Tell = lambda scope, problem: self._runtime.set_problem(("ends", scope), problem)  # noqa: E731
        return Ends(self._ask_ends, tell=tell, scope_of=self._hooks.scope_of)

    @cached_property
    def _aligner(self) -> Aligner | None:
        asked = self._options.alignment
        if asked is None:
            return None
        # A query that ends by itself has no time to wait for splits that are read.
        idle = asked.idle_timeout if self._targets is None else 0.0
        # And none to wait for other sources.
        others = (
            self._group.others
            if self._group is not None and self._targets is None
            else lambda: MAX_WATERMARK
        )
        scope_of = self._hooks.scope_of
        return Aligner(
            self._ask_times,
            max_drift=asked.max_drift,
            idle_timeout=idle,
            others=others,
            scope_of=scope_of,
        )

    @cached_property
    def _group(self) -> GroupAlignment | None:
        asked = self._options.alignment
        if asked is None or asked.group is None:
            return None
        return GroupAlignment(
            asked.group,
            max_drift=asked.max_drift,
            idle_timeout=asked.idle_timeout,
            newest=lambda: self._runtime.newest_assignment(timeout=0.0),
        )

    @cached_property
    def _metrics(self) -> "DriverMetrics | None":
        if self._options.metrics_port is None:
            return None
        # few queries serve any: a web server
        from balanced_source_spark.driver_metrics import DriverMetrics

        return DriverMetrics(self._options.source or "embedded", port=self._options.metrics_port)

    def initialOffset(self) -> dict[str, Any]:
        return stream_offset.to_json(StreamOffset())

    def prepareForTriggerAvailableNow(self) -> None:
        """Note what there is to read.

        Under an operator that waits until the driver has registered, because it may have to list
        the splits itself.
        """
        if self._options.source is None:
            self._take_targets()
        else:
            self._is_ending = True

    def _take_targets(self) -> None:
        assignment = self._runtime.first_assignment(timeout=self._options.start_timeout)
        if not self._begins_pulling(assignment):
            known = self._ends.get_all(assignment.owners, timeout=self._options.start_timeout)
            self._targets = {split_id: answer.end for split_id, answer in known.items()}

    def _begins_pulling(self, assignment: Assignment) -> bool:
        """Whether the readers of this query, which ends by itself, ask for splits.

        It ends with the source then.

        Raises:
            InvalidSpecError: it could not tell when that is.
        """
        if not assignment.look_ahead:
            return False
        source = self._options.embedded
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
        found = self._next_offset(start, limit)
        moved = time.monotonic()
        while (
            self._is_pulling
            and found == start
            and not self._is_over(stream_offset.from_json(start))
        ):
            if time.monotonic() - moved > self._options.start_timeout:
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
        if isinstance(limit, ReadAllAvailable) and self._targets is None and not self._is_ending:
            self._is_single = True  # trigger(once=True), see the stream reader
            self.prepareForTriggerAvailableNow()
        base = self._based_on(begin)
        if base is None:
            return start
        base, seen = self._looked(base)
        ends = seen.ends
        end = self._advanced(base, seen)
        deadline = time.monotonic() + self._options.start_timeout
        while (
            self._is_short(end) and end.positions == base.positions and time.monotonic() < deadline
        ):
            time.sleep(_RETRY)  # what does not move ends a query with AvailableNow
            end = self._advanced(base, seen)
        self._note(begin, end, ends)
        if is_new(begin, end):
            return self._signed(end)
        if self._is_pulling:
            return start
        return start if (closing := self._closing(begin)) is None else self._signed(closing)

    def _based_on(self, delivered: StreamOffset) -> StreamOffset | None:
        """Where the next micro-batch begins, with everything up to `delivered` committed.

        None: not yet.
        """
        self._runtime.committed(delivered)
        self._hooks.note_delivered(delivered)
        if self._is_ending and self._targets is None:
            self._take_targets()
        if self._is_pulling:
            return self._runtime.base()
        if self._targets is not None and not self._runtime.wait_until_assigned(
            timeout=self._options.start_timeout
        ):
            raise ChannelError(
                f"nothing was assigned to this driver within {self._options.start_timeout:.0f} s"
            )
        if self._targets is None and not delivered.epoch:
            self._runtime.wait_until_begun(timeout=self._options.start_timeout)
        return self._runtime.base()

    def _signed(self, end: StreamOffset) -> dict[str, Any]:
        return stream_offset.to_json(replace(end, source=self._options.checkpoint_owner))

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
        found = stream_offset.from_json(offset)
        check_owner(
            found, owner=self._options.checkpoint_owner, accepted=self._options.accept_checkpoint_of
        )
        self._check_shape(found)
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
        targets = self._targets or {}
        return self._aligner is not None and any(
            (end.positions.get(s) or 0) < to for s, to in targets.items()
        )

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

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        finish = self._own(end)
        self._has_closed |= finish.closings > 0
        plans = plan(stream_offset.from_json(start), finish)
        settings = self._runtime.settings(timeout=self._options.start_timeout) if plans else {}
        self._hooks.note_planned(plans, settings)
        self._runtime.planned(finish)
        self._gate.note(len(finish.readers))
        owned = Counter(finish.owners.values())
        return [
            ReaderPartition(
                subtask_id=p.subtask_id,
                ranges=p.ranges,
                splits=max(1, owned[p.subtask_id]),
                settings=settings,
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

    def stop(self) -> None:
        """Close what was made.

        A part that fails to close keeps no other one open, and is told afterwards.
        """
        with ExitStack() as parts:
            for name in ("_hooks", "_aligner", "_ends", "_control", "_runtime"):
                if (part := self.__dict__.get(name)) is not None:
                    parts.callback(part.close)

    def _looked(self, base: StreamOffset) -> tuple[StreamOffset, Look]:
        """Returns what brokers say of the splits of `base`, and `base` with what they confirmed.

        A query that ends by itself waits until that is known of all splits.
        """
        deadline = time.monotonic() + self._options.start_timeout
        while True:
            self._base = base = with_confirmed(base, self._confirmed)
            known = self._ends.get(base.positions)
            self._confirmed = {**self._confirmed, **confirmed(base, known)}
            seen = look(base, known, deleted=self._ends.deleted)
            self._hooks.note_look(base, seen)
            if self._targets is None or not (unknown := seen.unknown(base)):
                return base, seen
            if time.monotonic() > deadline:
                raise _unknown(unknown, self._options.start_timeout)
            time.sleep(_RETRY)

    def _advanced(self, base: StreamOffset, seen: Look) -> StreamOffset:
        # A query that ends by itself would end without the records of a silent split: it waits, and
        # fails in words.
        held = {s: p or 0 for s, p in base.positions.items()}
        # Tasks skip what is deleted, after another look of their own.
        skipped = seen.deleted if seen.deleted and self._hooks.may_skip() else {}
        silent = self._ends.silent - skipped.keys()
        free = reachable(base, {**seen.ends, **skipped}, targets=self._targets, silent=silent)
        if self._is_single:  # there is no second micro-batch for what limits or the alignment leave
            return self._ended(base, seen, free)
        admitted = self._aligner.cap(held, free) if self._aligner is not None else free
        aligned = {s: max(p, admitted.get(s, 0)) for s, p in held.items()}
        positions = self._hooks.admit(held, aligned, may_wait=self._targets is None)
        return self._ended(base, seen, positions)

    def _ended(
        self, base: StreamOffset, seen: Look, positions: Mapping[SplitId, int]
    ) -> StreamOffset:
        return advance(
            base,
            positions,
            terms=seen.terms,
            term_ends=seen.term_ends,
            cuts=seen.cuts if seen.cuts and self._hooks.may_skip() else {},
            max_records_per_reader=self._options.max_records_per_reader,
        )

    def _note(
        self,
        begin: StreamOffset,
        end: StreamOffset,
        ends: Mapping[SplitId, int],
        behind: Mapping[SplitId, int | None] | None = None,
    ) -> None:
        """Tell people; nothing here may end the query."""
        now = time.monotonic()
        if end.positions == begin.positions and now - self._shown_at < _TELL_IDLE:
            return  # an idle query asks a hundred times a second
        self._shown_at = now
        silent = self._ends.silent
        heard = {s: known for s, known in ends.items() if s not in silent} if silent else ends
        seen = observe(begin, end, heard, behind)
        aligned = self._aligner.report() if self._aligner is not None else {}
        self._shown = {**seen.to_json(), **({"alignment": aligned} if aligned else {})}
        if self._metrics is not None:
            self._metrics.note(seen, aligned_to=aligned.get("alignedTo"))
        unread = {} if seen.lag is None else {UNREAD: seen.lag + seen.records}
        late = {} if seen.millis_behind is None else {MILLIS_BEHIND: seen.millis_behind}
        lags = seen.lags_for_report()
        metrics = {"skew": seen.skew, **unread, **late, **aligned, **self._hook_numbers(), **lags}
        self._runtime.note_progress(
            Progress(lag=seen.lag, metrics=metrics, alignment=self._group_watermark())
        )

    def _hook_numbers(self) -> Mapping[str, int]:
        """Return the connector's numbers, and pass on its figures.

        What is wrong with them is logged once.
        """
        try:
            if self._metrics is not None:
                self._metrics.note_figures(self._hooks.figures())
            return _whole(self._hooks.numbers())
        except Exception as error:  # noqa: BLE001
            # They are for people: nothing here may end the query
            if not self._has_wrong_numbers:
                log.warning(
                    "the connector's hooks return no valid figures: they are left out",
                    error=repr(error),
                )
            self._has_wrong_numbers = True
            return {}

    def _group_watermark(self) -> SourceWatermark | None:
        if self._aligner is None or self._group is None:
            return None
        return self._group.report(self._aligner.watermark)

    def _settings(self) -> Mapping[str, Any]:
        """Returns what the newest assignment says; nothing while there is none."""
        assignment = self._runtime.newest_assignment(timeout=0.0)
        return self._of_its_kind(assignment.settings) if assignment is not None else NO_SETTINGS

    def _set_problem(self, key: ProblemKey, problem: Problem | None) -> None:
        self._runtime.set_problem(key, problem)

    def _send_event(self, subtask_id: int, event: SourceEvent) -> bool:
        return self._runtime.send_event(subtask_id, event)

    def _check_problems(self) -> None:
        self._runtime.check_problems()

    def _known_settings(self) -> Mapping[str, Any]:
        """Returns what assignments said, with what only former ones named."""
        return self._of_its_kind(self._runtime.settings(timeout=0.0))

    def _of_its_kind(self, settings: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the settings of an assignment.

        Raises:
            InvalidSpecError: they are for another connector than the one that reads.
        """
        if settings and self._options.connector not in settings:
            raise InvalidSpecError(
                f"the source is of kind {', '.join(settings)}, and this query would read it with"
                f" connector {self._options.connector!r}: set the option connector to the kind of"
                " the source",
                field="option connector",
            )
        return settings

    def _ask_ends(self, scope: str, split_ids: Iterable[SplitId]) -> Mapping[SplitId, SplitEnd]:
        if self._runtime.newest_assignment(timeout=0.0) is None:
            return {}
        listed, held = list(split_ids), marks(self._base)
        return self._hooks.ends(scope, listed, {s: held[s] for s in listed if s in held})

    def _ask_times(
        self, scope: str, millis: Mapping[SplitId, int]
    ) -> Mapping[SplitId, RecordTime | None]:
        if self._runtime.newest_assignment(timeout=0.0) is None:
            return {}
        return self._hooks.event_times(scope, millis)


def _whole(numbers: Mapping[str, int]) -> Mapping[str, int]:
    """Return the numbers; a report holds nothing else."""
    if wrong := {name: number for name, number in numbers.items() if type(number) is not int}:
        raise ContractViolationError(f"numbers returned {wrong}: return whole numbers")
    return numbers


def _driver_calls(options: Options) -> DriverCalls | None:
    """Returns what makes calls for an operator, on the first host.

    Local mode makes them by itself.
    """
    if options.source is None or options.host != FIRST_HOST:
        return None
    query = query_of(options)
    return DriverCalls(
        lambda: installed().get(options.connector), query.secrets, client_id=query.client_id
    )


def _unknown(split_ids: Collection[SplitId], timeout: float) -> DiscoveryError:
    return DiscoveryError(
        f"ends of {len(split_ids)} splits, such as {min(split_ids)}, are unknown after"
        f" {timeout:.0f} s: check that the servers of the source answer, then start the query again"
    )
