"""The status as a function of what is known: three conditions and one sentence."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from balanced_source.api import DATA_LOSS_REASONS, Problem
from balanced_source.coordinator import CoordinatorState
from balanced_source.coordinator.phase import acknowledged_epoch, source_phase
from balanced_source.errors import DiscoveryError, RefusedDiscoveryError
from balanced_source.lifecycles import SOURCE, SourcePhase
from balanced_source_operator.controller.application import ApplicationState, Decision
from balanced_source_operator.controller.reasons import Reason, severity
from balanced_source_operator.spec.status import ApplicationStatus, Balance, Condition, Status

READY: Final = "Ready"
PROGRESSING: Final = "Progressing"
DEGRADED: Final = "Degraded"
DATA_LOSS: Final = "DataLoss"
"""Only there when records were skipped because they were gone."""

MESSAGE_LIMIT: Final = 1024
"""Characters of a condition's message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the status is made from.

    Attributes:
        generation: of the resource.
        selector: label selector of the pods.
        now: seconds since the epoch.
        state: the coordinator's; None while there is none.
        pending_splits: splits without an owner.
        is_finished: whether a bounded source has been read to its end.
        discovery: errors of discovery by scope.
        problems: everything else that is wrong, as far as the operator has found it.
        application: what was decided about it.
        waiting_for: hosts that keep the recovery gate closed.
        is_overdue: whether readers have been waited for longer than the gate's deadline.
        previous: conditions as they are stored.
    """

    generation: int
    selector: str
    now: float
    state: CoordinatorState[Any] | None
    pending_splits: int
    is_finished: bool
    discovery: Mapping[str, Exception]
    problems: Sequence[Problem]
    application: Decision
    waiting_for: Sequence[str]
    is_overdue: bool
    previous: Sequence[Mapping[str, Any]]


WAITS_FOR_READERS: Final = (Reason.RECOVERING, Reason.WAITING_FOR_READERS)
"""Reasons of Progressing that end when readers register."""

_APPLICATION_PROBLEMS: Final = (
    Reason.APPLICATION_FAILED,
    Reason.APPLICATION_STUCK,
    Reason.APPLICATION_STATE_WRONG,
)


def status_of(facts: Facts) -> Status:
    """The whole status."""
    missing = _missing_readers(facts)
    degraded = _degraded(facts, missing)
    progressing = _progressing(facts, missing)
    ready = _ready(facts, degraded, progressing)
    state = facts.state
    report = state.hosts[next(iter(state.hosts))].report if state else None
    return Status(
        observed_generation=facts.generation,
        conditions=[
            _condition(facts, READY, ready[0], ready[1], ready[2]),
            _condition(
                facts, PROGRESSING, progressing is not None, *_or_else(progressing, Reason.STABLE, "nothing to do")
            ),
            _condition(
                facts, DEGRADED, degraded is not None, *_or_else(degraded, Reason.AS_EXPECTED, "nothing is wrong")
            ),
            *_data_loss(facts),
        ],
        epoch=state.epoch if state else 0,
        acknowledged_epoch=acknowledged_epoch(state) if state else 0,
        readers=report.parallelism if report else 0,
        selector=facts.selector,
        splits=(len(state.owners) if state else 0) + facts.pending_splits,
        pending_splits=facts.pending_splits,
        balance=_balance(state),
        lag=report.lag if report else None,
        application=ApplicationStatus(name=facts.application.name, state=facts.application.state.value),
        message=ready[2],
    )


def _data_loss(facts: Facts) -> list[Condition]:
    reports = [host.report for host in facts.state.hosts.values()] if facts.state else []
    lost = [problem for problem in _reported(facts) if _is_past_loss(problem)]
    skipped = sum(int(report.metrics.get("skippedOffsets", 0)) for report in reports if report is not None)
    if skipped:
        message = f"{skipped} offsets were deleted before they were read, and skipped (onDataLoss: Continue)"
        lost.append(Problem(reason=Reason.OFFSETS_SKIPPED, message=message))
    return [_condition(facts, DATA_LOSS, True, lost[0].reason, _sentence(lost))] if lost else []


def _is_past_loss(problem: Problem) -> bool:
    """Whether records are gone and reading went on without them."""
    return problem.reason in DATA_LOSS_REASONS and not problem.is_fatal


def _reported(facts: Facts) -> list[Problem]:
    """Problems that drivers report."""
    hosts = facts.state.hosts.values() if facts.state else ()
    return [problem for host in hosts if host.report is not None for problem in host.report.problems]


def _degraded(facts: Facts, missing: Problem | None) -> Problem | None:
    """The worst problem, with the number of the others."""
    found = [
        *facts.problems,
        *discovery_problems(facts.discovery),
        *(problem for problem in _reported(facts) if not _is_past_loss(problem)),
    ]
    if facts.is_overdue and missing is not None:
        advice = "nothing is assigned to them until they register: see the log of the driver's pod"
        found.append(Problem(reason=Reason.READERS_MISSING, message=f"{missing.message}; {advice}"))
    if facts.application.reason in _APPLICATION_PROBLEMS:
        found.append(Problem(reason=facts.application.reason, message=facts.application.message))
    if not found:
        return None
    found.sort(key=lambda problem: severity(problem.reason))
    return replace(found[0], message=_sentence(found))


def discovery_problems(errors: Mapping[str, Exception]) -> list[Problem]:
    """Return the problems that errors of discovery are, by scope."""
    return [
        Problem(
            reason=error.reason if isinstance(error, DiscoveryError) else Reason.DISCOVERY_FAILED,
            message=str(error),
            scope=scope,
            is_fatal=isinstance(error, RefusedDiscoveryError),
        )
        for scope, error in sorted(errors.items())
    ]


def _sentence(problems: Sequence[Problem]) -> str:
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return problems[0].message[: MESSAGE_LIMIT - len(more)] + more


def _progressing(facts: Facts, missing: Problem | None) -> Problem | None:
    """What is under way and will end by itself."""
    state, application = facts.state, facts.application
    if facts.is_finished or application.state is ApplicationState.PAUSED:
        return None
    if application.reason:
        return Problem(reason=application.reason, message=application.message)
    phase = source_phase(state) if state is not None else SOURCE.first
    if state is None or phase is SourcePhase.DISCOVERING:
        return Problem(reason=Reason.DISCOVERING, message="looking for topics and partitions")
    if missing is not None:
        return missing
    if phase is SourcePhase.ADOPTING:
        message = f"epoch {state.epoch} is published; the next micro-batch takes it"
        return Problem(reason=Reason.ADOPTING, message=message)
    return None


def _missing_readers(facts: Facts) -> Problem | None:
    """Readers that an application, which runs, should have brought."""
    if facts.waiting_for:
        return Problem(reason=Reason.RECOVERING, message=f"waiting for readers of host {', '.join(facts.waiting_for)}")
    if facts.state is not None and source_phase(facts.state) is SourcePhase.WAITING:
        return Problem(
            reason=Reason.WAITING_FOR_READERS, message="the application runs; its readers have not registered yet"
        )
    return None


def _ready(facts: Facts, degraded: Problem | None, progressing: Problem | None) -> tuple[bool, str, str]:
    """Ready means: a query is reading what was assigned to it."""
    state, application = facts.state, facts.application
    if degraded is not None and degraded.reason in (Reason.INVALID_SPEC, Reason.STATE_CORRUPT):
        return False, degraded.reason, degraded.message
    if facts.is_finished:
        return True, Reason.FINISHED, "everything has been read"
    if application.state is ApplicationState.PAUSED:
        return False, Reason.SUSPENDED, application.message
    reads = state is not None and acknowledged_epoch(state) > 0 and application.state is ApplicationState.RUNNING
    if reads and state is not None:
        told = f"{degraded.message}; " if degraded is not None else ""
        reading = f"{state.parallelism} readers read {len(state.owners)} splits in epoch {state.epoch}"
        return True, Reason.READING, told + reading
    why = (
        degraded or progressing or Problem(reason=Reason.NOT_READING, message="no reader has adopted an assignment yet")
    )
    return False, why.reason, why.message


def _balance(state: CoordinatorState[Any] | None) -> Balance:
    if state is None:
        return Balance()
    counts = Counter(state.owners.values())
    loads = [counts[subtask] for subtask in range(state.parallelism)]
    return Balance(min=min(loads), max=max(loads))


def _or_else(problem: Problem | None, reason: str, message: str) -> tuple[str, str]:
    return (problem.reason, problem.message) if problem is not None else (reason, message)


def _condition(facts: Facts, kind: str, is_true: bool, reason: str, message: str) -> Condition:
    """The transition time changes with the status only."""
    status = "True" if is_true else "False"
    stamp = datetime.fromtimestamp(facts.now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    for before in facts.previous:
        if before.get("type") == kind and before.get("status") == status:
            stamp = before.get("lastTransitionTime", stamp)
    return Condition(
        type=kind,
        status=status,
        observed_generation=facts.generation,
        last_transition_time=stamp,
        reason=reason,
        message=message[:MESSAGE_LIMIT],
    )
