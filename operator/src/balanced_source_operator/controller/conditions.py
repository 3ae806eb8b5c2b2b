"""The status as a function of what is known: three conditions and one sentence."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from balanced_source.coordinator import CoordinatorState
from balanced_source.coordinator.phase import acknowledged_epoch, source_phase
from balanced_source.errors import DiscoveryError
from balanced_source.lifecycles import SOURCE, SourcePhase
from balanced_source_operator.controller.application import ApplicationState, Decision
from balanced_source_operator.spec.status import ApplicationStatus, Balance, Condition, Status

READY: Final = "Ready"
PROGRESSING: Final = "Progressing"
DEGRADED: Final = "Degraded"
DATA_LOSS: Final = "DataLoss"
"""Only there when records were skipped because they were gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """Something that somebody should know, or mend."""

    reason: str
    message: str


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
        problems: by scope, from discovery.
        troubles: everything else that is wrong, worst first.
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
    problems: Mapping[str, Exception]
    troubles: Sequence[Trouble]
    application: Decision
    waiting_for: Sequence[str]
    is_overdue: bool
    previous: Sequence[Mapping[str, Any]]


RECOVERING: Final = "Recovering"
WAITING_FOR_READERS: Final = "WaitingForReaders"

WAITS_FOR_READERS: Final = (RECOVERING, WAITING_FOR_READERS)
"""Reasons of Progressing that end when readers register."""


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
            _condition(facts, PROGRESSING, progressing is not None, *_said(progressing, "Stable", "nothing to do")),
            _condition(facts, DEGRADED, degraded is not None, *_said(degraded, "AsExpected", "nothing is wrong")),
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
    skipped = sum(int(report.metrics.get("skippedOffsets", 0)) for report in reports if report is not None)
    if not skipped:
        return []
    message = f"{skipped} offsets were deleted before they were read, and skipped (onDataLoss: Continue)"
    return [_condition(facts, DATA_LOSS, True, "OffsetsSkipped", message)]


def _degraded(facts: Facts, missing: Trouble | None) -> Trouble | None:
    if facts.troubles:
        return facts.troubles[0]
    for _, problem in sorted(facts.problems.items()):
        reason = problem.reason if isinstance(problem, DiscoveryError) else "DiscoveryFailed"
        more = f" (and {len(facts.problems) - 1} more)" if len(facts.problems) > 1 else ""
        return Trouble(reason=reason, message=f"{problem}{more}")
    if facts.is_overdue and missing is not None:
        told = "nothing is assigned to them until they register: see the log of the driver's pod"
        return Trouble(reason="ReadersMissing", message=f"{missing.message}; {told}")
    if facts.application.reason in ("ApplicationFailed", "ApplicationStuck", "ApplicationStateWrong"):
        return Trouble(reason=facts.application.reason, message=facts.application.message)
    return None


def _progressing(facts: Facts, missing: Trouble | None) -> Trouble | None:
    """What is under way and will end by itself."""
    state, application = facts.state, facts.application
    if facts.is_finished or application.state is ApplicationState.PAUSED:
        return None
    if application.reason:
        return Trouble(reason=application.reason, message=application.message)
    phase = source_phase(state) if state is not None else SOURCE.first
    if state is None or phase is SourcePhase.DISCOVERING:
        return Trouble(reason="Discovering", message="looking for topics and partitions")
    if missing is not None:
        return missing
    if phase is SourcePhase.ADOPTING:
        message = f"epoch {state.epoch} is published; the next micro-batch takes it"
        return Trouble(reason="Adopting", message=message)
    return None


def _missing_readers(facts: Facts) -> Trouble | None:
    """Readers that an application, which runs, should have brought."""
    if facts.waiting_for:
        return Trouble(reason=RECOVERING, message=f"waiting for readers of host {', '.join(facts.waiting_for)}")
    if facts.state is not None and source_phase(facts.state) is SourcePhase.WAITING:
        return Trouble(reason=WAITING_FOR_READERS, message="the application runs; its readers have not registered yet")
    return None


def _ready(facts: Facts, degraded: Trouble | None, progressing: Trouble | None) -> tuple[bool, str, str]:
    """Ready means: a query is reading what was assigned to it."""
    state, application = facts.state, facts.application
    if degraded is not None and degraded.reason in ("InvalidSpec", "StateCorrupt"):
        return False, degraded.reason, degraded.message
    if facts.is_finished:
        return True, "Finished", "everything has been read"
    if application.state is ApplicationState.PAUSED:
        return False, "Suspended", application.message
    reads = state is not None and acknowledged_epoch(state) > 0 and application.state is ApplicationState.RUNNING
    if reads and state is not None:
        told = f"{degraded.message}; " if degraded is not None else ""
        reading = f"{state.parallelism} readers read {len(state.owners)} splits in epoch {state.epoch}"
        return True, "Reading", told + reading
    why = degraded or progressing or Trouble(reason="NotReading", message="no reader has adopted an assignment yet")
    return False, why.reason, why.message


def _balance(state: CoordinatorState[Any] | None) -> Balance:
    if state is None:
        return Balance()
    counts = Counter(state.owners.values())
    loads = [counts[subtask] for subtask in range(state.parallelism)]
    return Balance(min=min(loads), max=max(loads))


def _said(trouble: Trouble | None, reason: str, message: str) -> tuple[str, str]:
    return (trouble.reason, trouble.message) if trouble is not None else (reason, message)


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
        message=message[:1024],
    )
