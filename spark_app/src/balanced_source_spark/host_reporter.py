"""The reporter's thread of a reader host: it registers the host and writes its reports."""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from balanced_source.api import Position, Problem, ProblemBoard, SplitId
from balanced_source.documents.alignment import SourceWatermark
from balanced_source.documents.report import MILLIS_BEHIND, HostReport
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.errors import (
    BalancedSourceError,
    FencedError,
    SourceInUseError,
)
from balanced_source.host import ReaderHost, handed_on
from balanced_source_adapters.lazy_log import get_logger
from balanced_source_spark import checkpoints, executors, planning_watch
from balanced_source_spark.channels.channel import AssignmentChannel
from balanced_source_spark.channels.errors import ChannelError
from balanced_source_spark.checkpoints import CheckpointWatch
from balanced_source_spark.claims import HEARTBEAT_INTERVAL, LOOK_EVERY, ClaimWatch
from balanced_source_spark.driver_calls import DriverCalls
from balanced_source_spark.executors import AdoptionGate
from balanced_source_spark.instance import Instance
from balanced_source_spark.newest_assignment import RETRY, NewestAssignment
from balanced_source_spark.place import Whereabouts
from balanced_source_spark.planning_watch import PlanningWatch
from balanced_source_spark.report_lease import ReportLease
from balanced_source_spark.report_retries import ReportRetries

log = get_logger(__name__)

REPORT_INTERVAL: Final = 2.0
"""Seconds between reports when nothing but positions changed."""

SIGNS_OF_LIFE: Final = 3
"""Reports within the idle timeout of a source in an alignment group, at least: who says nothing is
not waited for."""

_RETRY_MAX: Final = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What goes with a report.

    Attributes:
        lag: records not yet read, with those of the running micro-batch; None while unknown.
        metrics: numbers for people, made when a report is written; called by any thread.
        alignment: how far the source is, for others of its alignment group.
    """

    lag: int | None = None
    metrics: Callable[[], Mapping[str, Any]] = dict
    alignment: SourceWatermark | None = None

    def at_the_end(self) -> "Progress":
        """Return what is left to say when the query ends.

        No one follows how far it is behind then.
        """
        metrics = {name: value for name, value in self.metrics().items() if name != MILLIS_BEHIND}
        return replace(self, lag=None, metrics=lambda: metrics)


_ReportedState: TypeAlias = tuple[StreamOffset, Mapping[SplitId, Position], SourceWatermark | None]


class HostReporter:
    """Registers the host and reports; the base of `HostRuntime`, which makes the attributes."""

    _calls: DriverCalls | None
    _channel: AssignmentChannel
    _checkpoint: CheckpointWatch
    _clock: Callable[[], float]
    _failure: BalancedSourceError | None
    _first: StreamOffset | None
    _former_hosts: tuple[str, ...]
    _gate: AdoptionGate
    _host: ReaderHost | None
    _instance: Instance
    _is_closed: bool
    _is_urgent: bool
    _lease: ReportLease
    _lock: threading.Condition
    _name: str
    _place: Whereabouts
    _problems: ProblemBoard
    _progress: Progress
    _reported: ReaderHost | None
    _retries: ReportRetries
    _seen: NewestAssignment
    _watch: PlanningWatch

    def _fail(self, error: BalancedSourceError) -> None:
        """End the query at its next planning call. Called with the lock held or not."""
        with self._lock:
            # The first failure is the cause; what follows are its consequences.
            if self._failure is None:
                log.error("this query ends", error=str(error))
                self._failure = error
            self._lock.notify_all()

    def _keep_reporting(self) -> None:
        with self._lock:
            self._lock.wait_for(lambda: self._first is not None or self._is_closed)
        if not self._is_closed:
            self._register()
        if self._failure is not None:
            return
        sequence, last = 1, self._clock()
        written: _ReportedState | None = None
        while not self._is_closed:
            self._await_occasion(last, written)
            if (reported := self._report_now(sequence + 1)) is not None:
                written, last = reported, self._clock()
            sequence += 1
        self._give_up_claim(sequence + 1)

    def _give_up_claim(self, sequence: int) -> None:
        """Write a report without an instance.

        Done by this thread, so that no other report of ours comes after it.
        """
        with self._lock:
            host, progress, problems = (
                self._host,
                self._progress.at_the_end(),
                tuple(self._problems),
            )
        if host is None or self._failure is not None:
            return  # nothing was claimed, or the source is another query's
        try:
            self._send(host, sequence, progress, problems, instance="")
        except (ChannelError, FencedError) as error:
            log.warning(
                "cannot give up the claim: the next query waits until it expires", error=str(error)
            )

    def _report_now(self, sequence: int) -> _ReportedState | None:
        """Write one report; returns what it says of progress, or None if it was not written."""
        with self._lock:
            host, progress, self._is_urgent = self._host, self._progress, False
            # Here, because nothing is planned while a micro-batch waits for executors.
            self._problems.set(executors.KEY, missing := self._gate.problem())
            # Without executors it is known why nothing begins.
            stall = self._watch.problem() if missing is None else None
            self._problems.set(planning_watch.KEY, stall)
            problems = tuple(self._problems)
        if host is None or self._is_closed or not self._write(host, sequence, progress, problems):
            return None
        # Only what is written: an end that was not reported must keep the query alive.
        self._reported = host
        return host.durable, host.committed, progress.alignment

    def _register(self) -> None:
        """Take an incarnation and say what this host holds; nothing is read before that."""
        delay, watch = RETRY, ClaimWatch(self._channel, host=self._name, instance=self._instance)
        while not self._is_closed:
            try:
                if not watch.may_claim():
                    time.sleep(LOOK_EVERY)
                    continue
                # Only a number: the first write with it makes it ours, or fails because someone
                # was quicker.
                incarnation = self._channel.claim(self._name)
                with self._lock:
                    # Under the lock: Spark may have committed another offset while the claim was
                    # waited for.
                    first = self._first or StreamOffset()
                    problem = self._checkpoint.compare(
                        first, watch.former, instance=str(self._instance)
                    )
                    self._problems.set(checkpoints.KEY, problem)
                    host = ReaderHost(
                        name=self._name, incarnation=incarnation, former_hosts=self._former_hosts
                    )
                    if self._seen.assignment is not None:
                        # A report of an earlier lineage would not count, and the host would have to
                        # register again.
                        host = replace(host, lineage=self._seen.assignment.lineage)
                    former = handed_on(watch.former, first)
                    host = replace(host.on_committed(first), former=former)
                    problems = tuple(self._problems)
                self._send(host, 1, Progress(), problems)
            # Waiting is over: the other query continues reading, so this one ends with its name.
            except SourceInUseError as error:
                self._fail(error)
                return
            except (ChannelError, FencedError) as error:
                log.warning("cannot register yet", error=str(error), retry_in=delay)
                time.sleep(delay)
                delay = min(2 * delay, _RETRY_MAX)
                continue
            self._registered(host)
            return

    def _registered(self, host: ReaderHost) -> None:
        splits = len(host.durable.positions)
        with self._lock:
            # What was committed while the first report was written.
            if self._first is not None:
                host = host.on_committed(self._first)
            sent = host.lineage
            if self._seen.assignment is not None:
                host = host.on_assignment(self._seen.assignment)
            self._host = host
            self._wake(urgent=host.lineage != sent)
            self._lock.notify_all()
        log.info(
            "the driver has joined its source",
            host=self._name,
            incarnation=host.incarnation,
            splits_of_its_checkpoint=splits,
        )

    def _await_occasion(self, last: float, written: _ReportedState | None) -> None:
        """Sleep until there is something to say.

        An acknowledgement now, progress and heartbeats in their intervals.
        """

        def due() -> float:
            alignment, host = self._progress.alignment, self._host
            # What is delivered counts, too: a source may wait for the end of its splits.
            changed = host is not None and (host.durable, host.committed, alignment) != written
            heartbeat = self._heartbeat_interval
            return last + (min(REPORT_INTERVAL, heartbeat) if changed else heartbeat)

        with self._lock:
            while not (self._is_urgent or self._is_closed):
                left = due() - self._clock()
                if left <= 0:
                    return
                self._lock.wait(min(left, REPORT_INTERVAL))

    @property
    def _heartbeat_interval(self) -> float:
        """Seconds between reports when nothing changed."""
        alignment = self._progress.alignment
        if alignment is None:
            return HEARTBEAT_INTERVAL
        return min(HEARTBEAT_INTERVAL, alignment.idle_timeout / SIGNS_OF_LIFE)

    def _write(
        self, host: ReaderHost, sequence: int, progress: Progress, problems: tuple[Problem, ...]
    ) -> bool:
        try:
            self._send(host, sequence, progress, problems)
        except FencedError as error:
            with self._lock:
                # Nothing may be planned any more, even before Spark asks for the failure.
                self._host = host.on_fenced()
            self._fail(error)
            return True
        except Exception as error:  # noqa: BLE001
            # A bug must not end the reporter: the driver would vanish silently
            pause = self._retries.failed(error)
            with self._lock:
                self._is_urgent = True
                # An alignment group must not take this source for idle because of the pause.
                pause = min(pause, max(REPORT_INTERVAL, self._heartbeat_interval))
                # Not until there is news: it goes with the next attempt, and need not hurry it.
                self._lock.wait_for(lambda: self._is_closed, pause)
            return False
        self._retries.written()
        return True

    def _send(
        self,
        host: ReaderHost,
        sequence: int,
        progress: Progress,
        problems: tuple[Problem, ...],
        *,
        instance: str | None = None,
    ) -> None:
        with self._lock:
            pace = self._watch.metrics()
        report = host.report(
            sequence=sequence,
            instance=str(self._instance) if instance is None else instance,
            heartbeat=self._clock(),
            location=self._place.host,
            zone=self._place.zone,
            lag=progress.lag,
            metrics={**progress.metrics(), **pace} or None,
            alignment=progress.alignment,
            problems=problems,
        )
        if report is not None:
            # Before the write: the operator counts from when it sees the report, which is later.
            begun_at = self._lease.now()
            self._channel.write(self._with_answers(report))
            with self._lock:
                self._lease.renew(begun_at)

    def _with_answers(self, report: HostReport) -> HostReport:
        if self._calls is None:
            return report
        with self._lock:
            # As late as possible: an answer that is ready need not wait for another report.
            return replace(report, answers=self._calls.answers())

    def _wake(self, *, urgent: bool) -> None:
        self._is_urgent |= urgent
        if urgent:
            self._lock.notify_all()
