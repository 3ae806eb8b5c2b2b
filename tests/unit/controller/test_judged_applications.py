"""When an application on trial counts as healthy or failed, and what is kept of that."""

import json
from dataclasses import replace
from typing import Any

import pytest

from balanced_source.api import Problem
from balanced_source.coordinator import HostPhase, HostRole, HostState
from balanced_source_operator.controller.application_facts import ApplicationState
from balanced_source_operator.controller.decisions import Decision
from balanced_source_operator.controller.last_valid import LIMIT
from balanced_source_operator.controller.rollback import (
    NOTHING,
    ApplicationSettings,
    NewestSettings,
    Refused,
    TrialMemory,
    TriedApplication,
    has_registered,
    is_of_former_times,
    memory_of,
    text_of,
)
from balanced_source_operator.kube.port import Manifest
from balanced_source_operator.resources.kinds import INCARNATION_ANNOTATION
from balanced_source_operator.spec import Application
from support.builders import identity, make_report, spec_json

ORDERS = identity()
AGAIN = "its driver was started again and completes no micro-batch"
RUNNING, FINISHED = ApplicationState.RUNNING, ApplicationState.FINISHED
WRONG = Problem(reason="ApplicationFailed", message="exit code 1")


def application(**status: Any) -> Manifest:
    """One that was made when incarnation 4 had registered."""
    metadata = {"annotations": {INCARNATION_ANNOTATION: "4"}}
    return {"metadata": metadata, "status": {"applicationState": {"state": "RUNNING"}} | status}


def tried(
    state: ApplicationState = RUNNING, problem: Problem | None = None, **changes: Any
) -> TriedApplication:
    trial = TriedApplication(
        manifest=application(),
        decision=Decision(state=state, problem=problem),
        incarnation=5,
        has_adopted=False,
        since=100.0,
    )
    return replace(trial, **changes)


@pytest.mark.parametrize(
    ("trial", "is_healthy"),
    [
        (tried(has_adopted=True), True),
        (tried(has_adopted=True, problem=WRONG), True),
        (tried(), False),
        (tried(has_adopted=True, incarnation=4), False),
        (tried(ApplicationState.PENDING, has_adopted=True), False),
        (tried(FINISHED), True),
        (tried(FINISHED, problem=WRONG), False),
        (tried(FINISHED, incarnation=4), True),
    ],
)
def test_healthy_is_what_has_completed_a_micro_batch_or_ended_in_order(
    trial: TriedApplication, *, is_healthy: bool
) -> None:
    assert trial.is_healthy is is_healthy


@pytest.mark.parametrize(
    ("trial", "why"),
    [
        (tried(), ""),
        (tried(manifest=application(executionAttempts=1)), ""),
        (tried(manifest=application(executionAttempts=2)), AGAIN),
        (tried(incarnation=4), "its driver has not registered"),
        (tried(problem=WRONG), "exit code 1"),
        (tried(problem=WRONG, has_adopted=True), ""),
        (tried(ApplicationState.PENDING), "it is RUNNING"),
        (tried(manifest=application(applicationState={}), incarnation=4), ""),
    ],
)
def test_why_an_application_failed(trial: TriedApplication, why: str) -> None:
    assert trial.failure(patience=60.0, now=160.0) == why
    assert trial.failure(patience=60.0, now=159.9) == ""


@pytest.mark.parametrize(
    ("text", "incarnation", "expected"),
    [("4", 4, False), ("4", 5, True), ("x", 1, True), ("x", 0, False), (None, 1, True)],
)
def test_a_driver_has_registered_if_it_is_newer_than_its_application(
    text: str | None, incarnation: int, *, expected: bool
) -> None:
    annotations = {} if text is None else {INCARNATION_ANNOTATION: text}
    assert has_registered({"metadata": {"annotations": annotations}}, incarnation) is expected


@pytest.mark.parametrize(
    ("role", "phase", "incarnation", "expected"),
    [
        (HostRole.JOINING, HostPhase.EXPECTED, 4, True),
        (HostRole.JOINING, HostPhase.EXPECTED, 5, False),
        (HostRole.JOINING, HostPhase.ACTIVE, 4, False),
        (HostRole.MEMBER, HostPhase.EXPECTED, 4, False),
    ],
)
def test_only_a_host_that_is_to_join_has_reports_of_former_times(
    role: HostRole, phase: HostPhase, incarnation: int, *, expected: bool
) -> None:
    host, report = HostState(role=role, phase=phase), make_report(incarnation)
    assert is_of_former_times(host, report, [application()]) is expected
    assert is_of_former_times(host, report, [application(), {"metadata": {}}]) is False
    assert is_of_former_times(host, report, []) is (
        role is HostRole.JOINING and phase is HostPhase.EXPECTED
    )


def settings(**changes: Any) -> ApplicationSettings:
    raw = {**spec_json()["application"], **changes}
    return ApplicationSettings(application=Application.model_validate(raw), conf={"spark.x": "1"})


@pytest.mark.parametrize(
    ("restart", "is_refused"),
    [
        ({}, False),
        ({"policy": "OnNonce"}, True),
        ({"policy": "OnNonce", "nonce": 7}, True),
        ({"policy": "OnNonce", "nonce": 8}, False),
        ({"nonce": 8}, False),
    ],
)
def test_after_the_pause_settings_are_tried_again_unless_a_nonce_is_waited_for(
    restart: dict[str, Any], *, is_refused: bool
) -> None:
    bad = settings(image="bad:2", restart=restart)
    refused = Refused(hash=bad.hash(ORDERS), nonce=7, times=1, at=0.0, why="no")
    memory = TrialMemory(healthy=settings(), refused=refused)

    assert memory.is_refused(bad, ORDERS, now=refused.again_at) is is_refused
    assert memory.is_refused(settings(), ORDERS, now=0.0) is False, "others were refused"
    is_other_nonce = restart.get("nonce") == 8
    assert memory.is_refused(bad, ORDERS, now=refused.again_at - 1) is not is_other_nonce


def test_without_healthy_settings_there_are_none_to_go_back_to() -> None:
    bad = settings(image="bad:2")
    memory = NOTHING.with_refused(bad.hash(ORDERS), nonce=None, why="no", now=0.0)
    assert memory.is_refused(bad, ORDERS, now=1.0)
    assert memory.effective(bad, ORDERS, now=1.0) is bad


def test_settings_that_are_known_to_be_healthy_change_nothing() -> None:
    memory = NOTHING.with_healthy(settings(), ORDERS)
    assert memory.with_healthy(settings(), ORDERS) is memory
    assert memory.with_healthy(settings(image="b"), ORDERS).healthy == settings(image="b")


def test_settings_are_the_same_object_until_they_change() -> None:
    newest, wanted = NewestSettings(), settings().application
    first = newest.of(wanted, {"a": "1"})
    assert newest.of(wanted, {"a": "1"}) is first
    other = newest.of(wanted, {"a": "2"})
    assert (other is first, other.conf) == (False, {"a": "2"})
    assert newest.of(settings().application, {"a": "2"}) is not other


def test_settings_have_a_hash_of_each_source() -> None:
    found = settings()
    other = replace(ORDERS, uid="other")
    assert found.hash(ORDERS) == found.hash(ORDERS) == settings().hash(ORDERS)
    assert found.hash(other) == settings().hash(other)


def test_a_text_of_exactly_the_limit_is_kept_and_a_longer_one_is_not() -> None:
    def text(length: int) -> str:
        refused = Refused(hash="h", nonce=None, times=1, at=0.0, why="x" * length)
        return text_of(TrialMemory(refused=refused))

    room = LIMIT - len(text(0))
    assert len(text(room)) == LIMIT
    assert text(room + 1) == ""


def test_settings_are_kept_that_leave_room_for_those_that_are_refused() -> None:
    def kept(length: int) -> bool:
        made = replace(settings(), conf={"spark.x": "y" * length})
        return NOTHING.with_healthy(made, ORDERS).healthy is not None

    document = {
        "application": json.loads(text_of(NOTHING.with_healthy(settings(), ORDERS)))["healthy"][
            "application"
        ],
        "conf": {"spark.x": ""},
    }
    room = LIMIT - 4096 - len(json.dumps(document))
    assert kept(room)
    assert not kept(room + 1)


@pytest.mark.parametrize(("times", "expected"), [(-1, 1), (0, 1), (1, 1), (2, 2)])
def test_what_was_refused_has_failed_once_at_least(times: int, expected: int) -> None:
    document = {"hash": "h", "nonce": "3", "times": times, "at": 5, "why": "no"}
    found = memory_of(json.dumps({"refused": document})).refused
    assert found == Refused(hash="h", nonce=3, times=expected, at=5.0, why="no")
    for name in document:
        part = {"refused": {key: value for key, value in document.items() if key != name}}
        assert memory_of(json.dumps(part)) == NOTHING
