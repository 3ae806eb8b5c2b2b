"""The impure part of a reader host.

Holds the state machine, follows the assignment, writes reports.

It lives in the one Python process beside the driver JVM in which Spark plans micro-batches. Spark's
calls are single-threaded; the channel's thread and the reporter's thread touch the state machine
too, hence the lock. Nothing here may raise into Spark for a fault that passes: any exception there
ends the query.
"""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from balanced_source.api import Problem, ProblemBoard, ProblemKey, SourceEvent, fatal_problem
from balanced_source.documents.assignment import Assignment, NumberedEvent
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.errors import (
    BalancedSourceError,
    ContractViolationError,
    FatalProblemError,
)
from balanced_source.host import Phase, ReaderHost, is_finished, readers_on
from balanced_source.names import shown_value
from balanced_source.reason_kinds import reason_fault
from balanced_source_adapters.lazy_log import get_logger
from balanced_source_adapters.problem_log import log_problem
from balanced_source_spark import checkpoints
from balanced_source_spark.channels.channel import AssignmentChannel, SameProcess
from balanced_source_spark.channels.errors import ChannelError
from balanced_source_spark.checkpoints import CheckpointWatch
from balanced_source_spark.contract.hooks import WithFormer, newest_settings
from balanced_source_spark.driver_calls import DriverCalls
from balanced_source_spark.executors import AdoptionGate
from balanced_source_spark.host_reporter import HostReporter, Progress
from balanced_source_spark.instance import Instance
from balanced_source_spark.newest_assignment import RETRY, NewestAssignment
from balanced_source_spark.place import Whereabouts, this_place
from balanced_source_spark.planning_watch import PlanningWatch
from balanced_source_spark.report_lease import ReportLease
from balanced_source_spark.report_retries import ReportRetries
from balanced_source_spark.why_nothing import check_patience, fenced, unassigned, without_retry

log = get_logger(__name__)


CLOSE_TIMEOUT: Final = 5.0
"""Seconds that `close` waits for the last report.

Without it, the next query waits as after a killed driver.
"""


EventListener = Callable[[int, SourceEvent], None]
"""Gets the reader that a custom event of the enumerator is for, and the event."""


def _unexpected(subtask_id: int, event: SourceEvent) -> None:
    log.warning("this event of the enumerator is not expected", reader=subtask_id, name=event.name)


class HostRuntime(HostReporter):
    """One reader host, from its first stream offset on.

    Args:
        channel: to the operator.
        host: name within the source.
        former_hosts: see `ReaderHost`.
        clock: seconds since the epoch.
        gate: whether executors are there for a larger parallelism.
        with_former: joins the settings of a new assignment with those of former ones.
        instance: which process this is; this one, unless a test says otherwise.
        on_event: gets the enumerator's custom events, once each and in order, in Spark's planning
            thread.
        calls: makes the calls that the operator leaves to the driver; None if there is no operator.
        lease: how long it may plan without a report.
        place: where it runs; where this process does, unless it is said.
        watch: whether Spark still plans.
    """

    def __init__(
        self,
        channel: AssignmentChannel,
        *,
        host: str = "0",
        former_hosts: tuple[str, ...] = (),
        clock: Callable[[], float] = time.time,
        on_event: EventListener = _unexpected,
        gate: AdoptionGate | None = None,
        with_former: WithFormer = newest_settings,
        instance: Instance | None = None,
        calls: DriverCalls | None = None,
        lease: ReportLease | None = None,
        place: Whereabouts | None = None,
        watch: PlanningWatch | None = None,
    ) -> None:
        self._lease = lease or ReportLease()
        self._channel = channel
        self._calls = calls
        self._on_event = on_event
        self._gate = gate or AdoptionGate(None)
        self._name, self._former_hosts = host, former_hosts
        self._clock = clock
        self._instance = instance or Instance.of_this_process()
        self._failure: BalancedSourceError | None = None
        self._place = place or this_place()
        self._lock = threading.Condition()
        self._host: ReaderHost | None = None
        self._first: StreamOffset | None = None
        self._offered = 0
        """Epoch of the newest base that was returned, logged or not."""
        self._seen = NewestAssignment(self._lock, channel, with_former)
        self._progress = Progress()
        self._problems = ProblemBoard(log_problem)
        self._checkpoint = CheckpointWatch()
        self._watch = watch or PlanningWatch()
        self._reported: ReaderHost | None = None
        self._retries = ReportRetries()
        self._is_urgent = False
        self._is_closed = False
        # Last, with the reporter: both threads touch what is made above.
        channel.start(self._on_assignment)
        self._reporter = threading.Thread(
            target=self._keep_reporting, name="bsrc-reporter", daemon=True
        )
        self._reporter.start()

    # --- called by Spark's planning thread --------------------------------------------------------

    def committed(self, offset: StreamOffset, progress: Progress | None = None) -> None:
        """All up to `offset` is delivered. The first call registers the host, in the background.

        Args:
            offset: newest one of which that is so.
            progress: numbers that fit it; those of before if None.
        """
        with self._lock:
            # At once: positions of now with the lag of before would count records twice.
            self._progress = progress or self._progress
            if self._host is not None:
                # A checkpoint that was behind may have caught up with this offset.
                self._problems.set(checkpoints.KEY, self._checkpoint.problem_after(offset))
                before, self._host = self._host, self._host.on_committed(offset)
                # in a new lineage: now it can be told
                self._wake(urgent=self._host.phase is not before.phase)
            elif self._first is None:
                self._first = offset
                self._lock.notify_all()
            else:
                self._first = offset

    def base(self) -> StreamOffset | None:
        """Where the next micro-batch continues; None while nothing may be read.

        Raises:
            FatalProblemError: see `check_problems`.
            FencedError, SourceInUseError: another query reads the source; see `check_owner`.
        """
        self.check_problems()
        self.check_owner()
        with self._lock:
            self._watch.called()
            if self._host is None or not self._may_plan():
                return None
            try:
                # Planned as if nothing newer had been seen: reading continues with the old number
                # of readers.
                if not self._may_adopt(self._host):
                    return replace(self._host, assignment=None).base()[1]
                self._host, base = self._host.base()
                self._offered = base.epoch if base is not None else self._offered
            except ContractViolationError as error:
                # Not raised: any error here ends the query, and the next assignment may be right.
                log.error("assignment refused", error=str(error))
                return None
            return base

    def check_owner(self) -> None:
        """Raise if this query may not read the source, now or ever again: it has to end.

        Raises:
            FencedError: another query has taken over.
            SourceInUseError: another query reads it, and continues.
        """
        with self._lock:
            if self._failure is not None:
                raise self._failure

    def _may_plan(self) -> bool:
        """Whether the operator cannot have given up this host."""
        newest = self._seen.assignment
        return self._lease.allows(newest.report_within if newest is not None else None)

    def _may_adopt(self, host: ReaderHost) -> bool:
        """A larger parallelism waits for its executors.

        Reading continues with the old one meanwhile.
        """
        newest, logged = host.assignment, host.durable.epoch
        # Only a new epoch of a host that reads already has anything to wait for. One that was given
        # a base and has not logged it does not read yet: before, its splits were those of its
        # checkpoint, which may be another host's now.
        is_reading = host.phase is Phase.READING and self._offered <= logged
        if newest is None or newest.epoch <= logged or not is_reading:
            return True
        return self._gate(
            adopted=len(host.durable.readers), wanted=len(readers_on(newest, host.name))
        )

    def planned(
        self, end: StreamOffset, *, begin: StreamOffset | None = None, records: int = 0
    ) -> None:
        """Spark has logged `end`.

        Its epoch is acknowledged at once, and its custom events go to their readers.

        Args:
            end: of the micro-batch.
            begin: where the micro-batch starts; None if positions say nothing about that.
            records: see `PlanningWatch.planned`.
        """
        with self._lock:
            self._watch.planned(records)
            if self._host is None:
                if begin is not None:
                    self._checkpoint.note_replay(begin, end)
                return
            before = self._host
            self._host, events = before.on_planned(end).take_events()
            # Reported at once: splits on their way to other hosts wait for this acknowledgement.
            is_new = end.epoch != before.durable.epoch
            self._wake(urgent=is_new or self._host.requests() != before.requests())
        # Without the lock, which other threads need: this is a connector's code, and may take long.
        for numbered in events:
            self._hand_over(numbered)

    def send_event(self, subtask_id: int, event: SourceEvent) -> bool:
        """Have the enumerator get a reader's custom event, once.

        Returns False while the host is not registered.
        """
        with self._lock:
            if self._host is None:
                return False
            self._host = self._host.send_event(subtask_id, event)
            self._wake(urgent=True)
            return True

    def _hand_over(self, numbered: NumberedEvent) -> None:
        try:
            self._on_event(numbered.subtask_id, numbered.event)
        except Exception as error:  # noqa: BLE001
            # A reader's mistake must not end the query while it is planned
            log.error(
                "event refused",
                reader=numbered.subtask_id,
                name=numbered.event.name,
                error=repr(error),
            )

    def settings(self, *, timeout: float) -> Mapping[str, Any]:
        """See `NewestAssignment.settings`."""
        return self._seen.settings(timeout=timeout)

    def first_assignment(self, *, timeout: float) -> Assignment:
        """See `NewestAssignment.first`."""
        return self._seen.first(timeout=timeout, check=self._check_waiting, refusal=self._refusal)

    def _check_waiting(self) -> None:
        """See `check_owner`. Logs what has changed meanwhile: the user sees a query that stands."""
        if not self._channel.has_operator:
            self._take_assigner_problems()
        self.check_owner()

    def _refusal(self) -> str | None:
        """Why nothing will be assigned.

        While the first report of a query that continues is under way, it may make the reason void.
        """
        is_reporting = self._first is not None and not self._is_heard
        return None if is_reporting else self._channel.refusal()

    @property
    def _is_heard(self) -> bool:
        """Whether the assigning side may know what this query continues from."""
        channel = self._channel
        return not isinstance(channel, SameProcess) or channel.has_heard

    @property
    def settled_epoch(self) -> int | None:
        """See `SameProcess`; None where an operator assigns, which waits for reports first."""
        channel = self._channel
        return channel.settled_epoch if isinstance(channel, SameProcess) else None

    def newest_assignment(self, *, timeout: float) -> Assignment | None:
        """See `NewestAssignment.wait`."""
        return self._seen.wait(timeout=timeout)

    def wait_until_assigned(self, *, timeout: float) -> bool:
        """Wait until this incarnation has an assignment, so AvailableNow does not end too soon."""
        deadline = time.monotonic() + timeout
        while True:
            with self._lock:
                left = deadline - time.monotonic()
                # A failure ends the wait as well: no assignment comes to a query that is fenced.
                self._lock.wait_for(
                    lambda: self._is_assigned or self._failure is not None, min(left, RETRY)
                )
                self._check_waiting()
                if self._is_assigned or left <= RETRY:
                    return self._is_assigned

    @property
    def _is_assigned(self) -> bool:
        return self._host is not None and self._host.assignment is not None

    def wait_until_begun(self, *, timeout: float) -> None:
        """Wait for the splits of a query without a past, if only Spark's checkpoint stores them.

        A first micro-batch without them would be all that a restart knows: the next query would
        start again, at splits that were recreated since, and at the ends of logs that have grown
        since.

        Raises:
            FatalProblemError, ChannelError: see `check_problems`; nothing was assigned within
                `timeout` seconds.
        """
        deadline = time.monotonic() + timeout
        while not self._channel.is_durable:
            self.check_problems()
            if self.wait_until_assigned(timeout=RETRY) or self._channel.refusal() is not None:
                return
            check_patience(deadline, timeout, self._channel)

    def unassigned(self, timeout: float) -> ChannelError:
        """Return why nothing was assigned in so many seconds, for a query that cannot wait."""
        refusal = self._channel.refusal()
        return unassigned(timeout, self._channel) if refusal is None else ChannelError(refusal)

    def is_finished(self, offset: StreamOffset) -> bool:
        """Whether everything there will ever be is delivered, and the report of that is written."""
        with self._lock:
            host, seen = self._host, self._seen.assignment
            if host is None or seen is None:
                return False
            # An older one tells the end that the former query had: there may be more by now.
            if seen.incarnations.get(self._name) != host.incarnation:
                return False
            if not is_finished(offset, seen):
                return False
            # The operator learns of the end by this report alone: the query must not end before it.
            report = self._reported
            is_reported = (
                report is not None
                and report.durable == offset
                and report.committed == offset.positions
            )
            self._wake(urgent=not is_reported)
            return is_reported

    def note_progress(self, progress: Progress) -> None:
        """Numbers for the next report."""
        with self._lock:
            self._progress = progress

    def set_problem(self, key: ProblemKey, problem: Problem | None) -> None:
        """Set the problem for `key`, or clear it when `problem` is None.

        Each change is logged once and reported at once; the operator turns it into a condition and
        an event.
        """
        if problem is not None and (fault := reason_fault(problem.reason)):
            raise ContractViolationError(f"problem {shown_value(key)}: {fault}")
        with self._lock:
            before = self._problems.get(key)
            self._problems.set(key, problem)
            self._wake(urgent=problem != before)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """The current problems, fatal ones first."""
        with self._lock:
            return tuple(self._problems)

    def check_problems(self) -> None:
        """Raise the first fatal problem if there is no operator to report it.

        Raises:
            FatalProblemError: its first line says what happened and what to do.
        """
        # The operator makes a condition of it; a query that ends would only be started again.
        if self._channel.has_operator:
            return
        with self._lock:
            self._take_assigner_problems()
            problem = fatal_problem(self._problems)
        if problem is not None:
            raise _ended_by(problem)

    def check_named(self) -> None:
        """Raise if something that the user names does not exist, and no operator reports it.

        For a query that ends by itself: its end would look as if everything had been read.

        Raises:
            FatalProblemError: its first line says what is missing and what to do.
        """
        if self._channel.has_operator:
            return
        for problem in self._channel.problems().values():
            if problem.is_hopeless:
                raise _ended_by(problem)

    def _take_assigner_problems(self) -> None:
        with self._lock:
            self._problems.replace("assigner", self._assigner_problems())

    def _assigner_problems(self) -> Mapping[ProblemKey, Problem]:
        """The problems of the assigning side that concern this query.

        Before its report is heard, start positions may be refused that it does not need. What a
        query that continues waits for may be missing, and it is known only then.
        """
        # In this order: problems that are read later know of the report.
        is_heard, found = self._is_heard, self._channel.problems()
        if is_heard:
            return found
        is_new = self._first is None or not self._first.positions
        return {key: p for key, p in found.items() if not p.is_fatal or (p.is_hopeless and is_new)}

    def close(self) -> None:
        """Give up the claim in a last report, so that the next query begins at once, then stop."""
        with self._lock:
            self._is_closed = True
            self._lock.notify_all()
        if self._calls is not None:
            self._calls.close()
        # The claim is given up by the reporter, so that none of its reports can come afterwards.
        self._reporter.join(CLOSE_TIMEOUT)
        self._channel.close()

    # --- called by the channel's thread -----------------------------------------------------------

    def _on_assignment(self, assignment: Assignment) -> None:
        with self._lock:
            try:
                self._seen.note(assignment)
            except BalancedSourceError as error:
                # A hook of the connector: in this thread no one would hear of it.
                self._fail(error)
            if self._calls is not None and self._seen.assignment is assignment:
                self._calls.want(assignment.calls, self._called)
            if self._host is not None:
                before, self._host = self._host, self._host.on_assignment(assignment)
                # The coordinator has lost its state, and waits for the positions of every host.
                self._wake(urgent=self._host.lineage != before.lineage)
                # An assignment that names a newer incarnation: another query has claimed this host.
                if self._host.phase is Phase.FENCED:
                    self._fail(fenced(assignment, self._name))
            self._lock.notify_all()

    def _called(self) -> None:
        """A call has ended, in a thread of its own: its answer goes into a report now."""
        with self._lock:
            self._wake(urgent=True)


def _ended_by(problem: Problem) -> FatalProblemError:
    """Return the error for a query that ends because of a problem."""
    return FatalProblemError(without_retry(problem.message), reason=problem.reason)
