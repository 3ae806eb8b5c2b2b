"""Failures in a row: of the same settings, until an application runs or the user starts again."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

import pytest

from balanced_source.api import Problem
from balanced_source_operator.controller.application_facts import ApplicationState
from balanced_source_operator.controller.decisions import Decision
from balanced_source_operator.controller.diagnosis import NO_CAUSE
from balanced_source_operator.controller.failure_row import FailureRow
from balanced_source_operator.resources.kinds import FAILURES_ANNOTATION
from support.builders import spark_application

NOW: Final = 1_790_000_000.0

PENDING = Decision(state=ApplicationState.PENDING)
RUNNING = Decision(state=ApplicationState.RUNNING)


def failed(failures: int, reason: str = "ApplicationFailed") -> Decision:
    problem = Problem(reason=reason, message="it failed")
    return Decision(state=ApplicationState.FAILED, failures=failures, problem=problem)


def there(before: int = 0, *, ran: float | None = None, attempts: int = 1) -> list[dict[str, Any]]:
    """An application after so many failures, whose driver was submitted so many seconds ago."""
    application = spark_application()
    application["metadata"]["annotations"][FAILURES_ANNOTATION] = str(before)
    if ran is not None:
        submitted = datetime.fromtimestamp(NOW - ran, UTC).isoformat()
        application["status"] = {
            "lastSubmissionAttemptTime": submitted,
            "executionAttempts": attempts,
        }
    return [application]


def after(*looks: tuple[Decision, list[dict[str, Any]], str]) -> int:
    row = FailureRow()
    for decision, applications, settings in looks:
        row = row.looked(decision, applications, settings=settings, now=NOW)
    return row.count


def test_failures_count_until_an_application_has_run_for_a_while() -> None:
    assert after((failed(2), there(), "a"), (PENDING, [], "a")) == 2
    assert (
        after((failed(2), there(), "a"), (PENDING, there(2), "a"), (failed(4), there(2), "a")) == 4
    )
    is_stable = (RUNNING, there(2, ran=600), "a")
    assert after((failed(2), there(), "a"), is_stable, (PENDING, [], "a")) == 0
    assert after((failed(2), there(), "a"), (RUNNING, there(2), "a")) == 0, "it does not say when"


def test_one_that_fails_every_few_minutes_is_seen_as_failing_while_it_runs() -> None:
    """An alert on the count would end with each start, and begin again."""
    runs = (RUNNING, there(3, ran=120), "a")

    assert after((failed(3), there(2), "a"), runs) == 3
    assert after((failed(3), there(2), "a"), runs, (failed(4), there(3), "a"), runs) == 4
    assert after(runs) == 3, "another operator has taken over"
    assert after((failed(3), there(2), "b"), (RUNNING, there(0, ran=5), "a")) == 0, "mended"


def test_other_settings_begin_a_new_row() -> None:
    assert after((failed(3), there(), "a"), (PENDING, there(), "b")) == 0
    assert after((failed(3), there(), "a"), (PENDING, there(), "b"), (failed(1), there(), "b")) == 1


def test_a_user_who_deletes_an_application_at_its_limit_begins_a_new_row() -> None:
    limit = (failed(3, "RestartLimitReached"), there(), "a")

    assert after(limit, (PENDING, [], "a")) == 0
    assert after(limit, (failed(3), there(), "a"), (PENDING, [], "a")) == 3, "the limit was raised"


def test_an_operator_that_starts_continues_to_count() -> None:
    assert after((PENDING, there(5), "a")) == 5
    assert after((PENDING, [], "a")) == 0
    assert after((failed(7), there(5), "a")) == 7
    leaving, newest = there(2), there(3)
    assert after((PENDING, leaving + newest, "a")) == after((PENDING, newest + leaving, "a")) == 3


def retried(attempts: int, cause: str = "out of memory") -> Decision:
    """What is decided while the Spark operator is about to start the driver again."""
    problem = Problem(reason="ApplicationRestarting", message=cause)
    return Decision(state=ApplicationState.STOPPING, failures=attempts, problem=problem)


def test_restarts_by_the_spark_operator_count_since_the_last_long_run() -> None:
    """Kubeflow's operator counts the attempts of an application over months."""
    stable = (RUNNING, there(ran=700, attempts=7), "a")
    failing = [(retried(number), there(ran=5, attempts=number), "a") for number in (7, 8, 9)]

    assert after(stable) == 0
    assert after(stable, failing[0]) == 1, "the one that ran for long has failed"
    assert after(stable, *failing) == 3
    assert after(stable, *failing, (RUNNING, there(ran=30, attempts=10), "a")) == 3
    assert after(stable, *failing, (RUNNING, there(ran=600, attempts=10), "a")) == 0
    assert after(*failing) == 9, "this operator has not seen it run"


def test_a_count_that_begins_again_after_a_long_run_is_followed() -> None:
    """That of Apache's operator does."""
    stable = (RUNNING, there(ran=700, attempts=7), "a")
    failing = [(retried(number), there(ran=5, attempts=number), "a") for number in (1, 2, 3)]

    assert after(stable, *failing) == 3


def relapse(*looks: tuple[Decision, list[dict[str, Any]], str]) -> Problem | None:
    row = FailureRow()
    for decision, applications, settings in looks:
        row = row.looked(decision, applications, settings=settings, now=NOW)
    return row.relapse(replace(looks[-1][0], name="orders-1"))


def test_what_runs_after_two_failures_is_not_taken_for_healthy_yet() -> None:
    failing = (retried(2), there(ran=5, attempts=2), "a")
    runs = (RUNNING, there(ran=30, attempts=3), "a")

    found = relapse(failing, runs)

    assert found is not None
    assert found.reason == "ApplicationRestarting"
    assert "SparkApplication orders-1 is started again after 2 failures in a row" in found.message
    assert "until it has run for 10 minutes. The last failure: out of memory" in found.message
    assert relapse(failing) is None, "the failure itself is said"
    assert relapse((retried(1), there(ran=5), "a"), runs) is None, "one crash happens"
    assert relapse(failing, (RUNNING, there(ran=600, attempts=3), "a")) is None
    assert relapse(failing, (RUNNING, there(ran=5), "b")) is None, "mended"


def test_an_operator_that_starts_does_not_know_why_it_failed() -> None:
    found = relapse((RUNNING, there(3, ran=30), "a"))

    assert found is not None
    assert found.reason == "ApplicationFailed"
    assert "after 3 failures in a row" in found.message
    assert "see the events of this BalancedSource" in found.message


def restarting(cause: str) -> Decision:
    problem = Problem(reason="ApplicationRestarting", message=f"its driver failed: {cause}")
    return Decision(state=ApplicationState.PENDING, failures=1, problem=problem)


def test_the_cause_of_a_failure_stays_when_its_pod_is_gone() -> None:
    known, gone = restarting("exit code 11"), restarting(NO_CAUSE)
    row = FailureRow().looked(known, there(ran=30), settings="a", now=NOW)

    assert row.explained(gone, there(ran=30)) == known
    row = row.looked(known, there(ran=30), settings="a", now=NOW)
    assert row.explained(gone, there(ran=30)) == known, "also at the look after that"


@pytest.mark.parametrize(
    ("seen", "found"),
    [
        (restarting(NO_CAUSE), there(ran=30)),
        (restarting("exit code 11"), there(ran=5, attempts=2)),
        (restarting("exit code 11"), []),
        (PENDING, there(ran=30)),
    ],
    ids=["it was never known", "another attempt", "no application", "no failure was seen"],
)
def test_a_cause_is_not_taken_from_another_failure(
    seen: Decision, found: list[dict[str, Any]]
) -> None:
    row = FailureRow().looked(seen, there(ran=30), settings="a", now=NOW)
    gone = restarting(NO_CAUSE)
    assert row.explained(gone, found) == gone
    assert row.explained(RUNNING, found) == RUNNING
