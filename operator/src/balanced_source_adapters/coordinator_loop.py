"""Runs a coordinator in a thread: for hosts without an event loop (a Spark driver, local mode)."""

import heapq
import itertools
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, assert_never

from balanced_source.api import CallExecutor, CallFailure, Problem, ProblemKey, discovery_problem
from balanced_source.backoff import backoff
from balanced_source.connectors.discovery import Alarm
from balanced_source.coordinator import (
    CallCompleted,
    Checkpoint,
    Effect,
    Event,
    ExecuteCall,
    HostGivenUp,
    HostLost,
    HostOverdue,
    HostsChanged,
    HostSilent,
    ParallelismChanged,
    PersistState,
    PublishAssignment,
    RebalanceRequested,
    ReportFact,
    ReportReceived,
    SourceChanged,
    SourceCoordinator,
    perform,
)
from balanced_source.documents.assignment import Assignment
from balanced_source.errors import (
    ConnectorContractError,
    ConnectorError,
    RefusedDiscoveryError,
    StateConflictError,
    StateError,
    contained,
)
from balanced_source.names import capitalised
from balanced_source.reasons import Reason
from balanced_source_adapters.lazy_log import get_logger
from balanced_source_adapters.mistakes import (
    call_error,
    close_coordinator,
    discovery_errors,
    log_mistake,
    of_connector,
)
from balanced_source_adapters.unanswered import AskedSince, asked_now, unanswered

_IDLE: Final = 60.0
_COORDINATOR: Final = "coordinator"

FIRST_RETRY: Final = 1.0
"""Seconds until a coordinator that failed is rebuilt; doubled with each failure in a row."""

MAX_RETRY: Final = 60.0
"""Seconds between two attempts to rebuild it, at most.

After twice that time without a failure the next is short.
"""

log = get_logger(__name__)


def with_alarms(execute: CallExecutor) -> CallExecutor:
    """Return what executes the calls of a connector, and alarms, which are no one's."""
    return lambda call: None if isinstance(call, Alarm) else execute(call)


@dataclass(slots=True)
class _Wishes:
    """The newest event of each kind, for a rebuilt coordinator whose stored state may lack it."""

    _newest: dict[object, Event] = field(default_factory=dict)

    def note(self, event: Event) -> None:
        match event:
            case ReportReceived():
                self._newest[ReportReceived, event.report.host] = event
            case SourceChanged() | ParallelismChanged() | HostsChanged() | RebalanceRequested():
                self._newest[type(event)] = event
            case HostLost() | HostSilent() | HostOverdue() | HostGivenUp() | CallCompleted():
                # hosts without an operator are never given up; a rebuilt coordinator asks again
                pass
            case _:
                assert_never(event)

    def source(self, default: Any) -> Any:
        """The source that the user asked for last."""
        event = self._newest.get(SourceChanged)
        return event.source if isinstance(event, SourceChanged) else default

    def events(self) -> list[Event]:
        """All but the source, which a coordinator is built with."""
        return [event for event in self._newest.values() if not isinstance(event, SourceChanged)]


class CoordinatorLoop:
    """Events may be put from any thread; effects are executed by the loop's thread, in their order.

    An unexpected error never ends the loop silently: it is logged, `problem` tells it, and the
    coordinator is rebuilt from the last stored checkpoint and told again what was asked for. Only a
    `StateConflictError` ends the loop.

    Args:
        coordinator: not started yet.
        execute: for its calls; each runs in a thread of its own, so that a cluster that does not
            answer does not hold up the others.
        publish: gets each assignment.
        persist: gets each checkpoint, before the assignment that it implies.
        first_retry: seconds until a coordinator that failed is rebuilt, see `FIRST_RETRY`.
    """

    def __init__(
        self,
        coordinator: SourceCoordinator[Any, Any],
        execute: CallExecutor,
        *,
        publish: Callable[[Assignment], None],
        persist: Callable[[Checkpoint[Any, Any]], None] = lambda _: None,
        first_retry: float = FIRST_RETRY,
    ) -> None:
        self.coordinator = coordinator
        self._execute = execute
        self._publish = publish
        self._persist = persist
        self._first_retry = first_retry
        self._stored: Checkpoint[Any, Any] | None = (
            # What was restored is stored already: a rebuild before the first write goes back to it.
            coordinator.checkpoint() if coordinator.is_restored else None
        )
        self._wishes = _Wishes()
        self._items: list[tuple[float, int, Event | ExecuteCall]] = []
        self._order = itertools.count()
        self._wake = threading.Condition()
        self._is_closed = False
        self._asking: Mapping[int, AskedSince] = {}
        self._failures = 0
        self._failed_at = float("-inf")
        self._problem: Exception | None = None
        self._problems: Mapping[ProblemKey, Problem] = {}
        self._assigned_in: str | None = None
        self._empty_since: float | None = None
        self._only_awaits = False
        self._undiscovered: frozenset[str] = frozenset()
        self._has_heard = False
        self._asked: set[int] = set()
        self._settled: int | None = None

    @property
    def problem(self) -> Exception | None:
        """What keeps the coordinator from deciding.

        None again as soon as an assignment is published.
        """
        return self._problem

    @property
    def problems(self) -> Mapping[ProblemKey, Problem]:
        """What is wrong now, as the operator's conditions would say it.

        A refused discovery is fatal while nothing has been assigned yet; later, what is assigned is
        read on.
        """
        return {**self._problems, **unanswered(self._asking.values())}

    @property
    def has_heard(self) -> bool:
        """Whether the report of a host counts in what this object says, for instance in `problems`.

        Before that, the coordinator does not know what the Spark checkpoint holds.
        """
        return self._has_heard

    @property
    def is_asking(self) -> bool:
        """Whether a call of the enumerator is executed now."""
        return bool(self._asking)

    @property
    def settled_epoch(self) -> int | None:
        """The epoch in which everything that was found since the first report has an owner.

        None while something is asked.
        """
        return self._settled if self._has_heard else None

    @property
    def undiscovered(self) -> frozenset[str]:
        """The scopes that have not answered yet, or whose start positions are not known."""
        return self._undiscovered

    @property
    def empty_for(self) -> float:
        """Seconds for which every scope has answered and there has been nothing to read.

        0 if there is a split that is not read to its end.
        """
        since = self._empty_since
        return 0.0 if since is None else time.monotonic() - since

    @property
    def only_awaits(self) -> bool:
        """Whether everything is read, except for what the user names and what does not exist."""
        return self._only_awaits

    @property
    def is_over(self) -> bool:
        """Whether the loop has ended and handles nothing any more.

        If `problem` is set, because of it.
        """
        return self._is_closed

    def start(self) -> threading.Thread | None:
        """Begin, in the background.

        Returns the thread, or None if the loop was closed before: nothing happens then.
        """
        if self._is_closed:
            return None
        thread = threading.Thread(target=self._run, name="bsrc-coordinator", daemon=True)
        thread.start()
        return thread

    def put(self, event: Event) -> None:
        """Have an event handled."""
        with self._wake:
            # Under the lock that a rebuild takes: an event is in its wishes, or is handled later.
            self._wishes.note(event)
            self._push(event)

    def close(self) -> None:
        """Handle nothing any more."""
        with self._wake:
            self._is_closed = True
            self._wake.notify_all()

    def _push(self, item: Event | ExecuteCall, *, delay: float = 0.0) -> None:
        # The number keeps items of one time in their order, and apart: events cannot be compared.
        heapq.heappush(self._items, (time.monotonic() + delay, next(self._order), item))
        self._wake.notify_all()

    def _run(self) -> None:
        self._turn(self._start)
        while items := self._next():
            self._turn(lambda items=items: self._handle(items))  # type: ignore[misc] # bound at once
        close_coordinator(self.coordinator)

    def _turn(self, step: Callable[[], None]) -> None:
        """Do one step; after an error, continue with a coordinator that can be trusted."""
        is_due = True
        while is_due and not self._is_closed:
            try:
                step()
                is_due = False
                self._problems = self._found_problems()
                self._note_empty()
                self._settled = self._settled_now()
                # Last: who sees it reads problems that know of the report.
                self._has_heard |= self.coordinator.state.has_reports
            except StateConflictError as error:
                log.error(
                    "another process serves this source: the coordinator stops", error=str(error)
                )
                self._problem = error
                # No one would decide about splits again, so a query without an operator ends.
                self._problems = {**self._problems, _COORDINATOR: _conflict(error)}
                self.close()
            # Code of connectors may raise what ends a process or a task, and would end this thread
            # in silence.
            except BaseException as error:  # noqa: BLE001
                # It must neither end the loop nor go unnoticed
                self._failed(error)
                # Whatever the step was, its coordinator may be half-changed.
                step = self._rebuild

    @property
    def has_assigned(self) -> bool:
        """Whether splits of what is read now were assigned."""
        return self._assigned_in == self.coordinator.enumerator.stage

    def _found_problems(self) -> Mapping[ProblemKey, Problem]:
        blocked = {} if self.has_assigned else self.coordinator.enumerator.blocked()
        found: dict[ProblemKey, Problem] = {
            ("discovery", scope): discovery_problem(
                error,
                scope=scope,
                is_fatal=scope in blocked and isinstance(error, RefusedDiscoveryError),
            )
            for scope, error in discovery_errors(self.coordinator).items()
        }
        return found if self._problem is None else {**found, _COORDINATOR: _failure(self._problem)}

    def _note_empty(self) -> None:
        enumerator = self.coordinator.enumerator
        self._only_awaits = enumerator.only_awaits()
        has_splits = not self._only_awaits and (
            enumerator.pending_splits() or enumerator.context.current_assignments()
        )
        self._undiscovered = enumerator.undiscovered()
        if has_splits or self._undiscovered:
            self._empty_since = None
        elif self._empty_since is None:
            self._empty_since = time.monotonic()

    def _settled_now(self) -> int | None:
        is_settled = not self._asked and self.coordinator.enumerator.is_settled()
        return self.coordinator.state.epoch if is_settled else None

    def _start(self) -> None:
        self._do_turn(self.coordinator.start(now=time.time()))

    def _handle(self, items: Sequence[Event | ExecuteCall]) -> None:
        """Handle what is due, and store the state once for all of it: a write may take seconds."""
        for item in items:
            if isinstance(item, ExecuteCall):
                # The answer is meant for this coordinator, even if another one is built meanwhile.
                threading.Thread(
                    target=self._call, args=(item, self.coordinator), name="bsrc-call", daemon=True
                ).start()
        effects: list[Effect] = []
        stage = self._assigned_in
        try:
            for item in items:
                if not isinstance(item, ExecuteCall):
                    decided = self.coordinator.handle(item, now=time.time())
                    if isinstance(item, CallCompleted):
                        self._asked.discard(item.call_id)
                    # Now: the next event may begin another stage.
                    stage = self._stage_after(decided, stage)
                    effects += decided
        finally:
            # What was decided before an error counts.
            self._do(_with_one_write(effects))
            self._assigned_in = stage

    def _failed(self, error: BaseException) -> None:
        """Tell people, and wait a little, so that an error that stays is no hot loop."""
        if time.monotonic() - self._failed_at > 2 * MAX_RETRY:
            self._failures = 0
        delay = backoff(self._failures + 1, first=self._first_retry, longest=MAX_RETRY)
        source = self.coordinator.source
        if (named := of_connector(source, error)) is not None:
            log_mistake(source.kind, error, retry_in=delay)
        elif isinstance(error, StateError):
            log.error("the state was not stored; trying again", error=str(error), retry_in=delay)
        else:
            log.error(
                "the coordinator failed: it is rebuilt from its last stored state; please report"
                " this as a bug",
                error=repr(error),
                retry_in=delay,
                traceback="".join(traceback.format_exception(error)),  # never values of variables
            )
        self._problem = named or (error if isinstance(error, Exception) else contained(error))
        self._problems = {**self._problems, _COORDINATOR: _failure(self._problem)}
        self._failures += 1
        self._failed_at = time.monotonic() + delay
        with self._wake:
            self._wake.wait_for(lambda: self._is_closed, delay)

    def _rebuild(self) -> None:
        """Replace the coordinator.

        Answers to calls of the former one are dropped, the new one asks again.
        """
        former = self.coordinator
        with self._wake:
            source = self._wishes.source(former.source)
            # What was put so far is in the wishes.
            self._items.clear()
            self._asked.clear()
            events = self._wishes.events()
            # From what is stored: what was never stored was never published either.
            self.coordinator = former.rebuilt(source, self._stored)
        self._start()
        for event in events:
            self._do_turn(self.coordinator.handle(event, now=time.time()))

    def _next(self) -> list[Event | ExecuteCall]:
        """Wait for what is due, and return all of it; nothing if the loop was closed."""
        due: list[Event | ExecuteCall] = []
        with self._wake:
            while not self._is_closed:
                while self._items and self._items[0][0] <= time.monotonic():
                    due.append(heapq.heappop(self._items)[2])
                if due:
                    return due
                self._wake.wait(self._items[0][0] - time.monotonic() if self._items else _IDLE)
        return []

    def _call(self, effect: ExecuteCall, owner: SourceCoordinator[Any, Any]) -> None:
        number = next(self._order)
        with self._wake:
            self._asking = {**self._asking, number: asked_now(effect.call)}
        try:
            result = self._execute(effect.call)
        except BaseException as error:  # noqa: BLE001
            # Whatever it was, the enumerator decides what it means. Without an answer it would wait
            # for ever.
            result = CallFailure(call_error(owner.source.kind, effect.call, error))
        with self._wake:
            self._asking = {n: asked for n, asked in self._asking.items() if n != number}
            # A rebuilt coordinator counts its calls again: a late answer would be taken for another
            # one's.
            if owner is self.coordinator:
                self._push(CallCompleted(effect.call_id, result))

    def _do_turn(self, effects: list[Effect]) -> None:
        """Perform the effects of one turn, directly after it."""
        self._do(effects)
        self._assigned_in = self._stage_after(effects, self._assigned_in)

    def _stage_after(self, effects: Sequence[Effect], before: str | None) -> str | None:
        """Return the stage whose splits were assigned last, directly after a turn."""
        is_assigned = any(isinstance(e, PublishAssignment) and e.assignment.owners for e in effects)
        return self.coordinator.enumerator.stage if is_assigned else before

    def _do(self, effects: list[Effect]) -> None:
        for effect in effects:
            perform(effect, self)

    # --- ports of effects, see EffectPorts --------------------------------------------------------

    def persist_state(self, effect: PersistState) -> None:
        """Store the state."""
        self._persist(effect.checkpoint)
        # After the write: a rebuild must not begin with what was never stored.
        self._stored = effect.checkpoint

    def publish_assignment(self, effect: PublishAssignment) -> None:
        """Hand the assignment to the drivers."""
        self._publish(effect.assignment)
        # Published: the coordinator decides again, so what was wrong is over.
        self._problem = None

    def execute_call(self, effect: ExecuteCall) -> None:
        """Execute a call in this thread, when it is due."""
        if not effect.delay:
            self._asked.add(effect.call_id)
        with self._wake:
            self._push(effect, delay=effect.delay)

    def report_fact(self, effect: ReportFact) -> None:
        """Log it."""
        say = log.warning if effect.warning else log.info
        say(effect.message, reason=effect.reason)


def _with_one_write(effects: Sequence[Effect]) -> list[Effect]:
    """Return effects of several turns: the newest state implies all assignments among them."""
    newest = [effect for effect in effects if isinstance(effect, PersistState)][-1:]
    return [*newest, *(effect for effect in effects if not isinstance(effect, PersistState))]


def why_failed(error: Exception) -> str:
    """Return the sentence about what keeps a coordinator from deciding, for people."""
    if isinstance(error, StateConflictError):
        return f"another query or process keeps its state in the same place: {error}"
    if isinstance(error, ConnectorError | ConnectorContractError | StateError):
        return str(error)
    return f"the coordinator failed: {error!r}. Please report this as a bug"


def _conflict(error: StateConflictError) -> Problem:
    why = capitalised(why_failed(error))
    return Problem(reason=Reason.STATE_CONFLICT, message=why, is_fatal=True)


def _failure(error: Exception) -> Problem:
    why = capitalised(why_failed(error))
    message = f"{why}. The coordinator is rebuilt and retries automatically"
    is_ours = not isinstance(error, ConnectorError | ConnectorContractError)
    reason = Reason.INTERNAL_ERROR if is_ours else Reason.CONNECTOR_BROKEN
    return Problem(reason=reason, message=message)
