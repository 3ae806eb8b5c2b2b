"""Failures in a row: of the same settings, until an application runs or the user starts again."""

from datetime import UTC, datetime
from typing import Any, Final

from balanced_source.api import Problem
from balanced_source_operator.controller.application_facts import ApplicationState
from balanced_source_operator.controller.decisions import Decision
from balanced_source_operator.controller.failure_row import FailureRow
from balanced_source_operator.resources.kinds import FAILURES_ANNOTATION
from support.builders import spark_application

NOW: Final = 1_790_000_000.0

PENDING = Decision(state=ApplicationState.PENDING)
RUNNING = Decision(state=ApplicationState.RUNNING)


def failed(failures: int, reason: str = "ApplicationFailed") -> Decision:
    problem = Problem(reason=reason, message="it failed")
    return Decision(state=ApplicationState.FAILED, failures=failures, problem=problem)


def there(before: int = 0, *, ran: float | None = None) -> list[dict[str, Any]]:
    """An application after so many failures, whose driver was submitted so many seconds ago."""
    application = spark_application()
    application["metadata"]["annotations"][FAILURES_ANNOTATION] = str(before)
    if ran is not None:
        submitted = datetime.fromtimestamp(NOW - ran, UTC).isoformat()
        application["status"] = {"lastSubmissionAttemptTime": submitted}
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
