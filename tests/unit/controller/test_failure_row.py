"""Failures in a row: of the same settings, until an application runs or the user starts again."""

from typing import Any

from balanced_source.api import Problem
from balanced_source_operator.controller.application_facts import ApplicationState
from balanced_source_operator.controller.decisions import Decision
from balanced_source_operator.controller.failure_row import FailureRow
from balanced_source_operator.resources.kinds import FAILURES_ANNOTATION
from support.builders import spark_application

PENDING = Decision(state=ApplicationState.PENDING)
RUNNING = Decision(state=ApplicationState.RUNNING)


def failed(failures: int, reason: str = "ApplicationFailed") -> Decision:
    problem = Problem(reason=reason, message="it failed")
    return Decision(state=ApplicationState.FAILED, failures=failures, problem=problem)


def there(before: int = 0) -> list[dict[str, Any]]:
    application = spark_application()
    application["metadata"]["annotations"][FAILURES_ANNOTATION] = str(before)
    return [application]


def after(*looks: tuple[Decision, list[dict[str, Any]], str]) -> int:
    row = FailureRow()
    for decision, applications, settings in looks:
        row = row.looked(decision, applications, settings=settings)
    return row.count


def test_failures_count_until_an_application_runs() -> None:
    assert after((failed(2), there(), "a"), (PENDING, [], "a")) == 2
    assert (
        after((failed(2), there(), "a"), (PENDING, there(2), "a"), (failed(4), there(2), "a")) == 4
    )
    assert after((failed(2), there(), "a"), (RUNNING, there(2), "a"), (PENDING, [], "a")) == 0


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
