"""What is remembered of settings that worked and of settings that failed."""

import json
from dataclasses import replace
from typing import Any

import pytest

from balanced_source_operator.controller.application_facts import ApplicationState
from balanced_source_operator.controller.decisions import Decision
from balanced_source_operator.controller.rollback import (
    FIRST_PAUSE,
    MAX_PAUSE,
    NOTHING,
    ApplicationSettings,
    Refused,
    TrialMemory,
    TriedApplication,
    has_registered,
    memory_of,
    on_trial,
    text_of,
)
from balanced_source_operator.resources.kinds import HASH_ANNOTATION
from balanced_source_operator.spec import Application
from support.builders import identity, spec_json

ORDERS = identity()


def settings(**changes: Any) -> ApplicationSettings:
    raw = {**spec_json()["application"], **changes}
    return ApplicationSettings(application=Application.model_validate(raw), conf={"spark.x": "1"})


GOOD, BAD = settings(image="good:1"), settings(image="bad:2")
HEALTHY = NOTHING.with_healthy(GOOD, ORDERS)


def refused(times: int, *, nonce: int | None = None) -> Refused:
    return Refused(hash=BAD.hash(ORDERS), nonce=nonce, times=times, at=1000.0, why="it is FAILING")


def tried(made_from: ApplicationSettings) -> TriedApplication:
    return TriedApplication(
        manifest={"metadata": {"annotations": {HASH_ANNOTATION: made_from.hash(ORDERS)}}},
        decision=Decision(state=ApplicationState.RUNNING),
        incarnation=1,
        has_adopted=False,
        since=0.0,
    )


def test_an_application_is_on_trial_unless_its_settings_were_healthy() -> None:
    assert on_trial(tried(BAD), HEALTHY, ORDERS)
    assert not on_trial(tried(GOOD), HEALTHY, ORDERS)
    assert not on_trial(tried(BAD), NOTHING, ORDERS), "there is nothing to go back to"


def test_the_driver_of_an_application_without_annotations_has_registered() -> None:
    """An earlier release made it."""
    assert has_registered({"metadata": {}}, 1)
    assert not has_registered({"metadata": {}}, 0)


@pytest.mark.parametrize(
    ("times", "pause"),
    [
        (1, FIRST_PAUSE),
        (2, 2 * FIRST_PAUSE),
        (6, 32 * FIRST_PAUSE),
        (7, MAX_PAUSE),
        (10**9, MAX_PAUSE),
    ],
)
def test_settings_that_fail_again_are_tried_less_often(times: int, pause: float) -> None:
    found = refused(times)
    assert found.again_at == 1000.0 + pause

    memory = replace(HEALTHY, refused=found)
    assert memory.effective(BAD, ORDERS, now=found.again_at - 1) is memory.healthy
    assert memory.effective(BAD, ORDERS, now=found.again_at) is BAD


def test_failures_in_a_row_are_counted_for_the_same_settings() -> None:
    memory = HEALTHY
    for _ in range(2):
        memory = memory.with_refused(BAD.hash(ORDERS), nonce=None, why="it is FAILING", now=5.0)
    assert memory.refused is not None
    assert memory.refused.times == 2

    other = memory.with_refused(settings(image="x").hash(ORDERS), nonce=None, why="no", now=6.0)
    assert other.refused is not None
    assert other.refused.times == 1


def test_settings_that_are_healthy_after_all_are_not_refused_any_more() -> None:
    memory = TrialMemory(refused=refused(3))

    assert memory.with_healthy(BAD, ORDERS) == TrialMemory(healthy=BAD)
    assert memory.with_healthy(GOOD, ORDERS) == TrialMemory(healthy=GOOD, refused=refused(3))


def test_the_next_operator_remembers_the_same() -> None:
    memory = replace(HEALTHY, refused=refused(3, nonce=7))

    assert memory_of(text_of(memory)) == memory
    assert text_of(NOTHING) == ""
    assert memory_of("") == memory_of("{") == memory_of('{"refused":{}}') == NOTHING


def test_only_what_the_user_has_set_is_remembered() -> None:
    """A setting with its default has the default of the next operator."""
    stored = json.loads(text_of(HEALTHY))["healthy"]["application"]

    assert stored == {**spec_json()["application"], "image": "good:1"}


def test_settings_with_a_secret_are_not_remembered() -> None:
    hidden = ApplicationSettings(application=GOOD.application, conf={"spark.password": "hunter2"})

    assert HEALTHY.with_healthy(hidden, ORDERS).healthy is None


@pytest.mark.parametrize(
    ("status", "why"),
    [
        ({}, ""),
        ({"applicationState": None}, ""),
        ({"applicationState": {"state": "FAILING"}}, "it is FAILING"),
    ],
)
def test_an_application_that_no_spark_operator_has_looked_at_has_not_failed(
    status: dict[str, Any], why: str
) -> None:
    trial = tried(BAD)
    waiting = replace(
        trial,
        manifest={**trial.manifest, "status": status},
        decision=Decision(state=ApplicationState.PENDING),
    )
    assert waiting.failure(patience=60.0, now=1000.0) == why
