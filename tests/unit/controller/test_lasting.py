"""What a single look does not find: an application that is made again, a pod that stays."""

from dataclasses import replace
from typing import Any

import pytest

from balanced_source.api import Problem
from balanced_source_operator.controller.application import stop
from balanced_source_operator.controller.application_facts import ApplicationState
from balanced_source_operator.controller.decisions import Decision
from balanced_source_operator.controller.lasting import Lasting
from support.builders import driver_pod, spark_application

STUCK = Problem(reason="ApplicationStuck", message="nothing happened")
PENDING = Decision(state=ApplicationState.PENDING)
WAITS = Decision(state=ApplicationState.STOPPING, waits_for="driver pod orders-1-driver")


def looked(*looks: Decision, has_driver: bool = False) -> Decision:
    """Return the last decision after a look at each, 100 s apart."""
    lasting, decision = Lasting(), looks[0]
    for number, look in enumerate(looks):
        now = 100.0 * number
        lasting = lasting.looked(look, has_driver=has_driver, now=now)
        decision = lasting.apply(look, patience=300.0, now=now)
    return decision


def stuck() -> Decision:
    return Decision(state=ApplicationState.FAILED, problem=STUCK, is_stuck=True)


@pytest.mark.parametrize(
    ("state", "stays"),
    [
        (ApplicationState.NONE, True),
        (ApplicationState.PENDING, True),
        (ApplicationState.STOPPING, True),
        (ApplicationState.RUNNING, False),
        (ApplicationState.FAILED, False),
        (ApplicationState.FINISHED, False),
        (ApplicationState.PAUSED, False),
        (ApplicationState.DEGRADED, False),
    ],
)
def test_an_application_that_was_stuck_is_a_problem_until_the_next_one_gets_further(
    state: ApplicationState, *, stays: bool
) -> None:
    after = [Decision(state=state), PENDING]

    assert looked(stuck(), after[0]).problem == (STUCK if stays else None)
    assert looked(stuck(), *after).problem == (STUCK if stays else None)


def test_a_driver_pod_shows_that_the_spark_operator_works() -> None:
    assert looked(stuck(), PENDING, has_driver=True).problem is None


def test_a_problem_of_the_application_comes_first() -> None:
    other = Problem(reason="DriverCannotStart", message="no image")

    decision = looked(stuck(), Decision(state=ApplicationState.PENDING, problem=other))

    assert decision.problem == other


def test_what_is_left_of_a_former_start_is_a_problem_after_a_while() -> None:
    early, late = looked(WAITS, WAITS, WAITS), looked(*[WAITS] * 4)

    assert (early.problem, early.look_again) == (None, 100.0)
    assert late.problem is not None
    assert late.problem.reason == "OldApplicationRemains"
    assert late.problem.message.startswith("Driver pod orders-1-driver is still there 300 s after")
    assert "kubectl delete pod --force" in late.problem.message

    other = replace(WAITS, waits_for="SparkApplication orders-1")
    late = looked(*[other] * 4)
    assert late.problem is not None
    assert "Its Spark operator has to release it" in late.problem.message
    assert "kubectl delete pod" not in late.problem.message


@pytest.mark.parametrize(("seconds", "left"), [(0, 300.0), (299.5, 0.5), (300, None)])
def test_what_is_waited_for_gets_exactly_the_time_that_it_may_take(
    seconds: float, left: float | None
) -> None:
    lasting = Lasting().looked(WAITS, has_driver=False, now=1000.0)
    decision = lasting.apply(WAITS, patience=300.0, now=1000.0 + seconds)

    assert decision.look_again == left
    assert (decision.problem is None) == (left is not None)


def test_of_two_reasons_to_look_again_the_earlier_one_counts() -> None:
    lasting = Lasting().looked(WAITS, has_driver=False, now=1000.0)
    for soon, due in ((20.0, 20.0), (400.0, 300.0)):
        waits = replace(WAITS, look_again=soon)
        assert lasting.apply(waits, patience=300.0, now=1000.0).look_again == due


def test_each_object_gets_the_whole_time() -> None:
    other = Decision(state=ApplicationState.STOPPING, waits_for="SparkApplication orders-1")

    assert looked(other, other, other, WAITS).problem is None
    assert looked(WAITS, WAITS, PENDING, WAITS).problem is None


def test_a_suspended_source_names_what_it_waits_for() -> None:
    leaving: dict[str, Any] = spark_application(deletionTimestamp="2026-01-01T00:00:00Z")

    assert stop([spark_application()], [driver_pod()]).waits_for == "SparkApplication orders-1"
    assert stop([leaving], []).waits_for == "SparkApplication orders-1"
    stopping = stop([], [driver_pod()])
    assert stopping.waits_for == "driver pod orders-1-driver"
    assert stopping.message == (
        "suspended: waiting until driver pod orders-1-driver is gone. Set spec.suspend to false to"
        " continue where it stopped"
    )
    assert stop([], []).message.startswith("suspended: set spec.suspend to false")
