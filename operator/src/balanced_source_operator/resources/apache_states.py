"""What Apache's operator says of an application, in the words of Kubeflow's operator.

Both mean the same things in other words. Differences that matter: Apache's operator ends every
attempt in `ResourceReleased` or `TerminatedWithoutReleaseResources`, whatever came of it, so the
state before tells; and a failure is a passing state there, because its restart policy decides next.
"""

from collections.abc import Mapping
from typing import Any, Final

_SUCCEEDED: Final = "Succeeded"

WORDS: Final[Mapping[str, str]] = {
    "": "",
    "Submitted": "SUBMITTED",
    "DriverRequested": "SUBMITTED",
    "DriverStarted": "RUNNING",
    "DriverReady": "RUNNING",
    "InitializedBelowThresholdExecutors": "RUNNING",
    "RunningHealthy": "RUNNING",
    "RunningWithPartialCapacity": "RUNNING",
    "RunningWithBelowThresholdExecutors": "RUNNING",
    "ScheduledToRestart": "PENDING_RERUN",
    "Failed": "FAILING",
    "SchedulingFailure": "FAILING",
    "DriverEvicted": "FAILING",
    "DriverStartTimedOut": "FAILING",
    "DriverReadyTimedOut": "FAILING",
    "ExecutorsStartTimedOut": "FAILING",
    _SUCCEEDED: "SUCCEEDING",
    # of a later release
    "Suspended": "SUSPENDED",
}
"""Apache's states and Kubeflow's, except for the two that end an attempt."""

ENDED: Final = frozenset({"ResourceReleased", "TerminatedWithoutReleaseResources"})
"""The application is over; nothing starts it again."""

_STARTED: Final = frozenset({"Submitted", "DriverRequested"})


def as_kubeflow(application: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the application with a status as Kubeflow's operator would write it.

    All else stays.
    """
    status = application.get("status") or {}
    current = status.get("currentState") or {}
    history = _history(status)
    word = _word(str(current.get("currentStateSummary") or ""), history)
    translated: dict[str, Any] = {
        "applicationState": {
            "state": word,
            "errorMessage": _cause(history) if word != "RUNNING" else "",
        },
        "executionAttempts": _attempts(status, is_next_counted=word == "PENDING_RERUN"),
    }
    if started := [state for state in history if state.get("currentStateSummary") in _STARTED]:
        translated["lastSubmissionAttemptTime"] = started[-1].get("lastTransitionTime")
    if word in {"FAILED", "COMPLETED"}:
        translated["terminationTime"] = current.get("lastTransitionTime")
    return {**application, "status": translated}


def _word(state: str, history: list[Mapping[str, Any]]) -> str:
    """Kubeflow's word.

    A state that a later release may add stays as it is: decisions do not know it, and say so.
    """
    if state not in ENDED:
        return WORDS.get(state, state)
    before = [str(entry.get("currentStateSummary")) for entry in history]
    # Apache's operator ends every attempt in the same states: only the state before tells.
    outcome = next((name for name in reversed(before) if name not in ENDED), "")
    return "COMPLETED" if outcome == _SUCCEEDED else "FAILED"


def _history(status: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """All states so far, the oldest first: their keys are numbers, written as text."""
    found = status.get("stateTransitionHistory") or {}
    return [
        found[key] or {} for key in sorted((key for key in found if str(key).isdigit()), key=int)
    ]


def _cause(history: list[Mapping[str, Any]]) -> str:
    """What the newest failure says."""
    failures = [
        entry for entry in history if WORDS.get(str(entry.get("currentStateSummary"))) == "FAILING"
    ]
    return str(failures[-1].get("message") or "") if failures else ""


def _attempts(status: Mapping[str, Any], *, is_next_counted: bool) -> int:
    """Attempts in a row without a long run between them: its counter starts again after one.

    Kubeflow's operator counts an attempt when it starts, Apache's when it is scheduled.
    """
    info = (status.get("currentAttemptSummary") or {}).get("attemptInfo") or {}
    return max(1, int(info.get("restartCounter") or 0) + (not is_next_counted))
