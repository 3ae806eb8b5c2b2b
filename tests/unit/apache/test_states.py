"""Apache's states mean what Kubeflow's mean, so that the same decisions and conditions follow."""

from typing import Any

import pytest

from balanced_source_operator.controller.application_facts import KUBEFLOW_STATES, failures_of
from balanced_source_operator.controller.diagnosis import cause, diagnose
from balanced_source_operator.resources.apache_states import ENDED, WORDS, as_kubeflow
from support.apache_operator import STATES


def application(
    *states: str, info: dict[str, int] | None = None, message: str = ""
) -> dict[str, Any]:
    """One that went through these states, a minute each."""
    entries = [
        {
            "currentStateSummary": state,
            "lastTransitionTime": f"2026-01-01T00:{n:02}:00Z",
            "message": message,
        }
        for n, state in enumerate(states)
    ]
    status = {
        "currentState": entries[-1],
        "stateTransitionHistory": {str(n): entry for n, entry in enumerate(entries)},
        "currentAttemptSummary": {"attemptInfo": info or {}},
    }
    return {"metadata": {"name": "orders-1", "uid": "u"}, "status": status}


def word(*states: str) -> str:
    return str(as_kubeflow(application(*states))["status"]["applicationState"]["state"])


def test_every_state_has_a_word_that_decisions_know() -> None:
    assert {state for state in STATES if state not in WORDS} == ENDED
    assert set(WORDS.values()) <= KUBEFLOW_STATES.keys()
    assert {word("Submitted", state) for state in STATES} <= KUBEFLOW_STATES.keys()


def test_a_state_of_a_later_release_is_unknown_and_not_the_absence_of_one() -> None:
    assert word("Submitted", "RunningOnTheMoon") == "RunningOnTheMoon"
    seen = as_kubeflow(application("Submitted", "RunningOnTheMoon"))
    problem = diagnose(seen, [], may_end=False, now=0.0)
    assert problem is not None
    assert "in state 'RunningOnTheMoon', which this release does not know" in problem.message
    assert word("Submitted", "Suspended") == "SUSPENDED"
    assert as_kubeflow({"metadata": {"name": "new"}})["status"]["applicationState"]["state"] == ""


@pytest.mark.parametrize("end", sorted(ENDED))
@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("Succeeded", "COMPLETED"),
        ("Failed", "FAILED"),
        ("DriverEvicted", "FAILED"),
        ("RunningHealthy", "FAILED"),
    ],
)
def test_the_previous_state_decides_how_an_application_ended(
    end: str, before: str, expected: str
) -> None:
    assert word("Submitted", "DriverRequested", before, end) == expected


def test_states_are_read_in_the_order_of_their_numbers() -> None:
    """As text, 10 comes before 2."""
    states = ["Submitted", *["RunningHealthy"] * 8, "Succeeded", "ResourceReleased"]
    assert word(*states) == "COMPLETED"


def test_a_failure_is_a_passing_state_because_the_operator_may_restart() -> None:
    assert (word("Failed"), word("Failed", "ScheduledToRestart")) == ("FAILING", "PENDING_RERUN")


def test_the_cause_is_what_the_newest_failure_says() -> None:
    seen = as_kubeflow(
        application(
            "Submitted", "DriverStarted", "Failed", "ResourceReleased", message="out of memory"
        )
    )
    assert cause(seen, []) == "out of memory"


def test_attempts_in_a_row_count_as_failures_and_a_long_run_ends_the_row() -> None:
    ended = ("DriverRequested", "DriverStarted", "Failed", "ResourceReleased")
    assert failures_of(as_kubeflow(application(*ended, info={"restartCounter": 2}))) == 3
    assert failures_of(as_kubeflow(application(*ended))) == 1
    long = ("DriverRequested", *["RunningHealthy"] * 10, "Failed", "ResourceReleased")
    assert failures_of(as_kubeflow(application(*long, info={"restartCounter": 2}))) == 1


def test_nothing_but_the_status_is_changed() -> None:
    before = application("RunningHealthy")
    assert as_kubeflow(before)["metadata"] is before["metadata"]
    assert "currentState" in before["status"]
