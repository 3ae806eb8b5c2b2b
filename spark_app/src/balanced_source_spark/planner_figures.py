"""What a planner tells people of its micro-batches: progress, metrics, numbers of the report."""

import threading
import time
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final, NamedTuple

from balanced_source.api import SplitId
from balanced_source.documents.alignment import SourceWatermark
from balanced_source.documents.report import ADMITTED, MILLIS_BEHIND, UNREAD, UNREAD_AT
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.errors import ContractViolationError
from balanced_source.host.ends import Look
from balanced_source.host.observation import NOTHING_DELETED, Observation, observe
from balanced_source.host.planning import PlanOnce
from balanced_source.host.reader_figures import ReaderFigures, for_report
from balanced_source.names import counted
from balanced_source_adapters.lazy_log import get_logger
from balanced_source_spark.host_reporter import Progress
from balanced_source_spark.lag_watch import LagWatch
from balanced_source_spark.planner_parts import PlannerParts

_TELL_IDLE: Final = 1.0
"""Seconds between two observations while nothing is read."""

_PATIENCE: Final = 0.2
"""Seconds to wait for servers while a micro-batch runs: what comes later counts at the next look,
and the planner must not be kept waiting."""

log = get_logger(__name__)


class _Noted(NamedTuple):
    """A micro-batch that people were told of.

    Attributes:
        begin: where it starts.
        end: where it ends.
        seen: what it means for each reader.
        aligned: state of the alignment in event time.
        watermark: of this source, for its alignment group.
        numbers: of the alignment and the connector.
        figures: what tasks of readers have measured.
        at: when servers were asked for the ends of splits, in seconds since the epoch.
        admitted: unread records that an alignment lets be read; None if splits are not aligned, or
            while it is unknown.
        firsts: see `Look.firsts`; they say how many of its records were deleted.
    """

    begin: StreamOffset
    end: StreamOffset
    seen: Observation
    aligned: Mapping[str, Any]
    watermark: SourceWatermark | None
    numbers: Mapping[str, Any]
    figures: Mapping[int, ReaderFigures]
    at: float
    admitted: int | None
    firsts: Mapping[SplitId, int]


class PlannerFigures(PlannerParts):
    """Notes each micro-batch for people; the base of `StreamPlanner`."""

    _is_single: bool

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._plan = PlanOnce()
        self._noted: _Noted | None = None
        self._shown: dict[str, Any] = {}
        self._shown_at = float("-inf")
        self._is_shown_idle = False
        self._has_wrong_numbers = False
        self._admitted: int | None = None

    @cached_property
    def _lag_watch(self) -> LagWatch:
        return LagWatch(self._look_again, turn=self._turn)

    def _note(
        self,
        begin: StreamOffset,
        end: StreamOffset,
        ends: Mapping[SplitId, int],
        behind: Mapping[SplitId, int | None] | None = None,
        *,
        firsts: Mapping[SplitId, int] = NOTHING_DELETED,
        is_read: bool = False,
    ) -> None:
        """Tell people of a micro-batch; nothing here may end the query.

        Args:
            begin: where it starts.
            end: where it ends.
            ends: see `observe`.
            behind: see `observe`.
            firsts: see `observe`.
            is_read: see `observe`.
        """
        # The only micro-batch of a query is read to the ends that were there when it began.
        if not self._is_single:
            self._lag_watch.planner_looked()
        if self._is_shown(begin, end):
            return
        self._tell_idle_readers(begin, end)
        seen = observe(
            begin,
            end,
            self._heard(ends),
            behind,
            plans=self._plan(begin, end),
            firsts=firsts,
            is_read=is_read,
            is_whole=self._is_all_known(end) and self._hooks.are_all_unread(end.positions),
        )
        aligned = self._alignment.report() if self._alignment is not None else {}
        figures = self._figures(end)
        counted = self._hook_numbers()
        # A connector's number takes the place of none of ours.
        self._shown = {
            **counted,
            **seen.to_json(figures),
            **({"alignment": aligned} if aligned else {}),
        }
        if self._metrics is not None:
            self._metrics.note_readers(figures)
        self._noted = _Noted(
            begin,
            end,
            seen,
            aligned,
            self._group_watermark(),
            {**counted, **aligned},
            figures,
            at=time.time(),
            admitted=self._admitted_records(seen),
            firsts=firsts,
        )
        self._pass_on(self._noted)

    def _is_shown(self, begin: StreamOffset, end: StreamOffset) -> bool:
        """Return whether people know already that nothing is read now.

        An idle query asks a hundred times a second.
        """
        now = time.monotonic()
        # Another epoch is shown at once: a program that has rescaled the query waits for it.
        is_idle = end.positions == begin.positions and end.epoch == begin.epoch
        if is_idle and self._is_shown_idle and now - self._shown_at < _TELL_IDLE:
            return True
        self._shown_at, self._is_shown_idle = now, is_idle
        return False

    def _note_skipped(self) -> None:
        """Tell the connector what tasks have passed over."""
        if "_samples" in self.__dict__ and (skipped := self._samples.skipped()):
            self._hooks.note_skipped(skipped)
            # The query may end before anything else is worth telling.
            self._is_shown_idle = False

    def _is_all_known(self, end: StreamOffset) -> bool:
        """Return False without a split while a part of the source has not answered.

        There may be any number of records then.
        """
        if end.positions or end.closings:
            return True
        newest = self._runtime.newest_assignment(timeout=0.0)
        return newest is not None and not newest.undiscovered

    def _tell_idle_readers(self, begin: StreamOffset, end: StreamOffset) -> None:
        """Say that a new number of readers is larger than that of splits, which no one else says.

        Only where a program may have rescaled the query. Readers that ask for splits get theirs
        later.
        """
        if end.parallelism == begin.parallelism or self.__dict__.get("_control") is None:
            return
        assignment = self._runtime.newest_assignment(timeout=0.0)
        if assignment is None or assignment.look_ahead:
            return
        idle, splits = end.parallelism - len(set(end.owners.values())), len(end.positions)
        if idle > 0:
            text = (
                f"no split for {idle} of {counted(end.parallelism, 'reader')}, because the source"
                f" has {counted(splits, 'split')}: a reader without one reads nothing, and costs"
                " nothing but a task per micro-batch"
            )
            log.info(text)

    def _admitted_records(self, _seen: Observation) -> int | None:
        """Return how many of the unread records an alignment lets be read; None without any."""
        return self._admitted

    def _progress_after(self, delivered: StreamOffset) -> Progress | None:
        """Return what goes with a report once the noted micro-batch is delivered.

        None if it is not the one that was delivered, or if nothing changes.
        """
        noted = self._noted
        if noted is None or noted.seen.is_read or noted.end.positions != delivered.positions:
            return None
        left = noted.admitted
        if left is not None:
            left -= sum(reader.running for reader in noted.seen.readers.values())
        self._noted = noted._replace(seen=noted.seen.delivered(), admitted=left)
        return _progress(self._noted)

    def _note_alignment(self) -> None:
        """Tell what an alignment has found since the micro-batch was noted.

        Where all splits wait for other sources, no micro-batch follows that would tell it, and
        those sources may wait for this one.
        """
        noted, found = self._noted, self._alignment
        mark = self._group_watermark()
        if noted is None or found is None or mark == noted.watermark:
            return
        aligned = found.report()
        self._shown = {**self._shown, "alignment": aligned}
        self._noted = noted._replace(
            aligned=aligned, watermark=mark, numbers={**noted.numbers, **aligned}
        )
        self._pass_on(self._noted)

    def _look_again(self) -> None:
        """Tell people how far behind the source is now, while the noted micro-batch runs.

        The query's progress stays: it says what that micro-batch is going to leave.
        """
        if (noted := self._noted) is None:
            return
        at = time.time()
        now = self._ends_now(noted.end, patience=_PATIENCE)
        seen = observe(
            noted.begin,
            noted.end,
            self._heard(now.ends),
            noted.seen.behind,
            plans=noted.seen.plans,
            firsts={**noted.firsts, **now.firsts},
            is_read=noted.seen.is_read,
            is_whole=noted.seen.is_whole,
        )
        self._pass_on(noted._replace(seen=seen, at=at))

    def _ends_now(self, found: StreamOffset, *, patience: float | None = None) -> Look:
        """Return between where and where the splits of an offset can be read now.

        As far as servers have said.
        """
        known = self._ends.get(found.positions, patience=patience)
        return Look(
            ends={s: answer.end for s, answer in known.items()},
            firsts={s: first for s, a in known.items() if (first := a.first) is not None},
        )

    def _heard(self, ends: Mapping[SplitId, int]) -> Mapping[SplitId, int]:
        """Return `ends` without those of silent splits: they are old, and would hide a lag."""
        silent = self._ends.silent
        return {s: end for s, end in ends.items() if s not in silent} if silent else ends

    def _pass_on(self, noted: _Noted) -> None:
        """Set metrics, and what goes with the next report."""
        if self._metrics is not None:
            self._metrics.note(noted.seen, aligned_to=noted.aligned.get("alignedTo"))
        self._runtime.note_progress(_progress(noted))

    def _figures(self, end: StreamOffset) -> Mapping[int, ReaderFigures]:
        """Return what the tasks of the present readers have measured."""
        if "_samples" not in self.__dict__:
            return {}
        return self._samples.take(end.readers)

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
        if self._alignment is None or self._group is None:
            return None
        return self._group.report(self._alignment.watermark)


def _progress(noted: _Noted) -> Progress:
    return Progress(
        lag=noted.seen.unread, metrics=lambda: _metrics(noted), alignment=noted.watermark
    )


def _metrics(noted: _Noted) -> Mapping[str, Any]:
    """Return the `metrics` of a report: there are far fewer reports than micro-batches."""
    seen, count = noted.seen, noted.seen.unread
    unread = {} if count is None else {UNREAD: count}
    looked = {UNREAD_AT: round(noted.at, 3)} if count else {}
    admitted = {} if noted.admitted is None else {ADMITTED: max(0, noted.admitted)}
    late = {} if seen.millis_behind is None else {MILLIS_BEHIND: seen.millis_behind}
    return {
        # A connector's number takes the place of none of ours.
        **noted.numbers,
        "skew": seen.skew,
        **unread,
        **looked,
        **admitted,
        **late,
        **seen.lags_for_report(),
        **for_report(noted.figures),
    }


def _whole(numbers: Mapping[str, int]) -> Mapping[str, int]:
    """Return the numbers; a report holds nothing else."""
    if wrong := {name: number for name, number in numbers.items() if type(number) is not int}:
        raise ContractViolationError(f"numbers returned {wrong}: return whole numbers")
    return numbers
