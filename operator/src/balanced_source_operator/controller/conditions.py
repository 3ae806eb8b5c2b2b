"""The status as a function of what is known: three conditions and one sentence."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

from pydantic import ValidationError

from balanced_source.api import Problem, fatal_problem
from balanced_source.coordinator import CoordinatorState, HostRole
from balanced_source.coordinator.phase import acknowledged_epoch, source_phase
from balanced_source.documents.report import count_of, seconds_behind
from balanced_source.lifecycles import SOURCE, SourcePhase
from balanced_source.names import counted, first_of
from balanced_source.reasons import Reason
from balanced_source_operator.controller.application_facts import ApplicationState
from balanced_source_operator.controller.autoscaling.settings import autoscaling_status
from balanced_source_operator.controller.facts import Facts
from balanced_source_operator.controller.hosts import adopted_epoch, host_statuses, running_hosts
from balanced_source_operator.controller.leaving import leaving
from balanced_source_operator.controller.liveness import newest_report
from balanced_source_operator.controller.problems import (
    degradations_of,
    losses_of,
    missing_readers,
    reported,
)
from balanced_source_operator.resources.kinds import PAUSED_ANNOTATION
from balanced_source_operator.spec.status import ApplicationStatus, BalanceStatus, Condition, Status

READY: Final = "Ready"
PROGRESSING: Final = "Progressing"
DEGRADED: Final = "Degraded"
DATA_LOSS: Final = "DataLoss"
"""Only there when records were skipped because they were gone; Unknown while they may have been."""

RESTART_PENDING: Final = "RestartPending"
PAUSED: Final = "Paused"
"""Only there while settings of a running application wait for a restart."""

AUTOSCALING: Final = "Autoscaling"
"""Only there with `spec.autoscaling`; False where more readers do not help or are not allowed."""

_NUMBERS: Final = ("epoch", "acknowledgedEpoch", "readers", "splits", "pendingSplits", "balance")

MESSAGE_LIMIT: Final = 1024
"""Characters of a condition's message."""


_WELL: Final = "nothing is wrong"
_NOT_YET: Final = (
    "nothing has been found wrong so far; not everything that the source reads has answered yet"
)
_NOT_READING: Final = "no reader has adopted an assignment yet"

_WAITING: Final = (
    "changes of the spec, except suspend, wait: the source has the annotation"
    f' {PAUSED_ANNOTATION}: "true". Remove it to apply them'
)

WAITS_FOR_READERS: Final = (Reason.RECOVERING, Reason.WAITING_FOR_READERS)
"""Reasons of Progressing that end when readers register."""


def status_of(facts: Facts) -> Status:
    """The whole status."""
    found = degradations_of(facts) or _found_before(facts)
    progressing = _progressing(facts, missing_readers(facts))
    ready = _ready(facts, replace(found[0], message=_brief(found)) if found else None, progressing)
    return _numbers(facts).model_copy(update=_described(facts, ready, progressing, found))


def _found_before(facts: Facts) -> list[Problem]:
    """Return what the operator before this one has found wrong, until this one knows better.

    Else a problem would be over with each restart of the operator, and come back in seconds.
    """
    before = _former_degraded(facts)
    if before.get("status") != "True":
        return []
    return [Problem(reason=str(before.get("reason", "")), message=str(before.get("message", "")))]


def _all_well(facts: Facts) -> str:
    """Return what is said while nothing is known to be wrong."""
    if not facts.is_first_look:
        return _WELL
    # As it was: a new operator must not write a status of each source because it knows less.
    return str(_former_degraded(facts).get("message") or _NOT_YET)


def _former_degraded(facts: Facts) -> Mapping[str, Any]:
    """Return the stored condition while this operator knows less than who has stored it."""
    if not facts.is_first_look or facts.previous.get("observedGeneration") != facts.generation:
        return {}
    found = facts.previous.get("conditions", ())
    return next((before for before in found if before.get("type") == DEGRADED), {})


def _described(
    facts: Facts,
    ready: tuple[bool | None, str, str],
    progressing: Problem | None,
    degradations: Sequence[Problem],
) -> dict[str, Any]:
    """Everything of the status but its numbers."""
    degraded = replace(degradations[0], message=_sentence(degradations)) if degradations else None
    acted_on = _acted_on(facts)
    return {
        "observed_generation": facts.generation,
        "conditions": [
            _condition(
                facts, READY, *ready, generation=facts.generation if ready[0] is False else acted_on
            ),
            _condition(
                facts,
                PROGRESSING,
                progressing is not None,
                *_or_else(progressing, Reason.STABLE, "nothing to do"),
                generation=acted_on,
            ),
            _condition(
                facts,
                DEGRADED,
                degraded is not None,
                *_or_else(degraded, Reason.AS_EXPECTED, _all_well(facts)),
            ),
            *_data_loss(facts),
            *_restart_pending(facts),
            *_paused(facts),
            *_autoscaling(facts),
        ],
        "autoscaling": autoscaling_status(facts.verdict),
        "selector": facts.selector,
        "hosts": (hosts := host_statuses(facts)),
        "running_hosts": running_hosts(hosts),
        "application": ApplicationStatus(
            name=facts.application.name, state=facts.application.state.value
        ),
        "message": ready[2],
        "last_valid_spec": facts.last_valid,
        "settings": facts.settings,
    }


def _acted_on(facts: Facts) -> int:
    """Return the generation that what is said of the query is about.

    While a pause or an error keeps the newest spec from effect, the query still follows a former
    one. `kubectl wait` must not take that for the change that it waits for.
    """
    if facts.in_effect is not None:
        return facts.in_effect
    found = facts.previous.get("conditions", ())
    observed = (c.get("observedGeneration") for c in found if c.get("type") == PROGRESSING)
    return min(facts.generation, count_of(next(observed, None)) or 0)


def _numbers(facts: Facts) -> Status:
    """The numbers; while the state is not known, those that are stored.

    Unknown is never shown as zero.
    """
    state = facts.state
    if state is None:
        return _stored_numbers(facts.previous)
    report = newest_report(state)
    return Status(
        epoch=state.epoch,
        acknowledged_epoch=acknowledged_epoch(state),
        readers=report.parallelism if report else 0,
        splits=len(state.owners) + facts.pending_splits,
        pending_splits=facts.pending_splits,
        balance=_balance(state),
        lag=report.lag if report and not facts.is_silent else None,
        seconds_behind=seconds_behind([report]) if report and not facts.is_silent else None,
    )


def _stored_numbers(previous: Mapping[str, Any]) -> Status:
    try:
        return Status.model_validate(
            {name: previous[name] for name in _NUMBERS if name in previous}
        )
    except ValidationError:
        return Status()  # edited by someone


def _data_loss(facts: Facts) -> list[Condition]:
    """The condition for records that are gone; absent if there are none."""
    lost, doubts = losses_of(facts), facts.losses.doubts
    is_known = True if lost else None
    found = [*lost, *doubts]
    return (
        [_condition(facts, DATA_LOSS, is_known, found[0].reason, _sentence(found))] if found else []
    )


def _restart_pending(facts: Facts) -> list[Condition]:
    """The condition that says what a restart waits for; absent if none is needed."""
    pending = [
        decision.pending for decision in facts.hosts.values() if decision.pending is not None
    ]
    return (
        [_condition(facts, RESTART_PENDING, True, pending[0].reason, _sentence(pending))]
        if pending
        else []
    )


def _paused(facts: Facts) -> list[Condition]:
    """The condition that says why changes of the spec have no effect; absent if they have."""
    if not facts.is_paused:
        return []
    return [_condition(facts, PAUSED, True, Reason.PAUSED_BY_ANNOTATION, _WAITING)]


def _autoscaling(facts: Facts) -> list[Condition]:
    """The condition that explains the newest decision of the autoscaler.

    Absent if there is none.
    """
    verdict = facts.verdict
    if verdict is None:
        return []
    return [_condition(facts, AUTOSCALING, verdict.is_able, verdict.reason, verdict.message)]


def _brief(problems: Sequence[Problem]) -> str:
    """The worst problem, with the number of the others: for a column of a table."""
    problems = _distinct(problems)
    return _counted(problems[0].message, len(problems) - 1)


def _sentence(problems: Sequence[Problem]) -> str:
    """All problems, the worst first, as far as there is room, and the number of the others."""
    problems = _distinct(problems)
    text, left = problems[0].message, 0
    room = MESSAGE_LIMIT - len(_counted("", len(problems)))
    for problem in problems[1:]:
        further = f"; also {problem.reason}: {problem.message}"
        if left or len(text) + len(further) > room:
            left += 1
        else:
            text += further
    return _counted(text, left)


def _distinct(problems: Sequence[Problem]) -> list[Problem]:
    """The problems, each once: operator and driver may say the same of a cluster."""
    found: dict[tuple[str, str], Problem] = {}
    for problem in problems:
        found.setdefault((problem.reason, problem.message), problem)
    return list(found.values())


def _counted(text: str, others: int) -> str:
    more = f" (and {others} more)" if others else ""
    return text[: MESSAGE_LIMIT - len(more)] + more


def _progressing(facts: Facts, missing: Problem | None) -> Problem | None:
    """What is under way and will end by itself."""
    state, application = facts.state, facts.application
    if facts.is_finished or application.state is ApplicationState.PAUSED:
        return None if facts.is_finished else _left_behind(facts)
    if application.reason:
        return Problem(reason=application.reason, message=application.message)
    phase = source_phase(state) if state is not None else SOURCE.first
    if state is None or phase is SourcePhase.DISCOVERING:
        waits = f": waiting for {first_of(facts.undiscovered, 3)}" if facts.undiscovered else ""
        message = f"looking for the splits of the source{waits}"
        return Problem(reason=Reason.DISCOVERING, message=message)
    if missing is not None:
        return missing
    drained = [n for n, host in state.hosts.items() if host.role is HostRole.DRAINING]
    if phase is SourcePhase.ADOPTING and drained:
        message = f"host {drained[0]} is lost; a drain attempt settles what it has delivered"
        return Problem(reason=Reason.DRAINING, message=message)
    if phase is SourcePhase.ADOPTING and adopted_epoch(facts, state) < state.epoch:
        message = (
            f"epoch {state.epoch} is decided; the next micro-batch after it is published takes it"
        )
        return leaving(facts) or Problem(reason=Reason.ADOPTING, message=message)
    return None


def _left_behind(facts: Facts) -> Problem | None:
    """Return what an application that was stopped may have begun to read and not finished.

    The next driver repeats that micro-batch, and needs all that it names. So this is not done,
    although it does not end by itself.
    """
    left = leaving(facts)
    if left is None:
        return None
    return replace(left, message=f"{left.message}. The source is stopped: let it run until then")


def _ready(
    facts: Facts, degraded: Problem | None, progressing: Problem | None
) -> tuple[bool | None, str, str]:
    """Ready means: a query is reading what was assigned to it. None: no one can tell."""
    state, application = facts.state, facts.application
    if application.state is ApplicationState.PAUSED and application.reason == Reason.SUSPENDED:
        more = f"; {degraded.message}" if degraded is not None else ""
        return False, Reason.SUSPENDED, application.message + more
    if facts.is_paused and _was_never_read(facts):
        return False, Reason.PAUSED_BY_ANNOTATION, f"not started: {_WAITING}"
    if degraded is not None and degraded.reason in (
        Reason.INVALID_SPEC,
        Reason.CONNECTOR_BROKEN,
        Reason.STATE_CORRUPT,
    ):
        return False, degraded.reason, degraded.message
    if facts.is_finished:
        return True, Reason.FINISHED, "everything has been read"
    if application.is_over:
        return _ended(facts)
    is_running = application.state is ApplicationState.RUNNING and not facts.starting
    if is_running and state is not None and adopted_epoch(facts, state) > 0:
        return _running(facts, state, degraded)
    why = (
        degraded
        or progressing
        or Problem(reason=Reason.NOT_READING, message=application.message or _NOT_READING)
    )
    return False, why.reason, why.message


def _was_never_read(facts: Facts) -> bool:
    """Return whether a source has no application, and has had none as far as anyone knows."""
    is_new = facts.state is None or adopted_epoch(facts, facts.state) == 0
    return is_new and facts.application.state is ApplicationState.NONE


def _running(
    facts: Facts, state: CoordinatorState[Any], degraded: Problem | None
) -> tuple[bool | None, str, str]:
    """What is said of a query that has taken an assignment."""
    if (silence := _with_reason(facts.problems, Reason.DRIVER_SILENT)) is not None:
        # It may read on without a way to the API server, or hang.
        return None, silence.reason, silence.message
    if (stall := _with_reason(reported(facts), Reason.QUERY_STALLED)) is not None:
        return False, stall.reason, stall.message
    if degraded is not None and not state.owners:
        # Such as a topic whose name was misspelt by an edit: the query runs, and reads nothing.
        return False, degraded.reason, f"{degraded.message}; no split is assigned to a reader"
    problem_text = f"{degraded.message}; " if degraded is not None else ""
    return True, Reason.READING, problem_text + _reading(facts, state)


def _reading(facts: Facts, state: CoordinatorState[Any]) -> str:
    count, splits = state.parallelism, counted(len(state.owners), "split")
    newest = f"{counted(count, 'reader')} read{'s' if count == 1 else ''} {splits}"
    if (adopted := adopted_epoch(facts, state)) < state.epoch:
        return f"epoch {adopted} is read; then {newest} in epoch {state.epoch}"
    return f"{newest} in epoch {state.epoch}"


def _ended(facts: Facts) -> tuple[bool, str, str]:
    """What is said of a query that has ended by itself, with the trigger availableNow.

    It ends although a split may not be read without the user's consent: others are read then.
    """
    name = facts.application.name
    if (left := fatal_problem(reported(facts))) is not None:
        message = f"{name} has ended, and has not read everything: {left.message}"
        return False, left.reason, message
    message = f"{name} has read what there was (trigger availableNow), and has ended"
    return True, Reason.FINISHED, message


def _with_reason(problems: Iterable[Problem], reason: Reason) -> Problem | None:
    return next((problem for problem in problems if problem.reason == reason), None)


def _balance(state: CoordinatorState[Any]) -> BalanceStatus:
    counts = Counter(state.owners.values())
    loads = [counts[subtask] for subtask in range(state.parallelism)]
    return BalanceStatus(min=min(loads), max=max(loads))


def _or_else(problem: Problem | None, reason: str, message: str) -> tuple[str, str]:
    return (problem.reason, problem.message) if problem is not None else (reason, message)


def _condition(
    facts: Facts,
    kind: str,
    is_true: bool | None,
    reason: str,
    message: str,
    *,
    generation: int | None = None,
) -> Condition:
    """A condition. Its transition time changes with its status only."""
    status = "Unknown" if is_true is None else str(is_true)
    stamp = datetime.fromtimestamp(facts.now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    for before in facts.previous.get("conditions", ()):
        if before.get("type") == kind and before.get("status") == status:
            stamp = before.get("lastTransitionTime", stamp)
    return Condition(
        type=kind,
        status=status,
        observed_generation=facts.generation if generation is None else generation,
        last_transition_time=stamp,
        reason=reason,
        message=message[:MESSAGE_LIMIT],
    )
