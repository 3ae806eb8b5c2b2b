"""What happens to the SparkApplication, case by case. Pods are the truth, states are hints."""

from datetime import datetime
from typing import Any

import pytest

from balanced_source.reasons import Reason
from balanced_source_operator.controller.application import decide, look, stop
from balanced_source_operator.controller.application_facts import ApplicationState
from balanced_source_operator.controller.decisions import Deadlines, Decision, Sightings, Wanted
from balanced_source_operator.controller.restarts import Hold
from balanced_source_operator.resources.kinds import SECRETS_ANNOTATION
from support.builders import driver_pod, spark_application

CREATED = "2026-01-01T00:00:00Z"
NOW = datetime.fromisoformat(CREATED).timestamp() + 10
DEADLINES = Deadlines(stuck_after=300, retry_failed_after=30)


def decision(
    applications: list[dict[str, Any]],
    pods: list[dict[str, Any]],
    *,
    now: float = NOW,
    since: float = NOW,
    **changes: Any,
) -> Decision:
    """What is decided at `now` about applications that are in their states since `since`."""
    wanted = {"base": "orders", "spec_hash": "h", "may_start": True, **changes}
    seen = Sightings().looked(applications, now=since)
    return decide(Wanted(**wanted), applications, pods, seen=seen, deadlines=DEADLINES, now=now)


def names(manifests: tuple[Any, ...]) -> list[str]:
    return [manifest["metadata"]["name"] for manifest in manifests]


@pytest.mark.parametrize(
    ("mounted", "needed", "is_kept"),
    [
        ("", (), True),
        ("a", ("a",), True),
        ("a,b", ("a",), True),
        ("a", ("a", "b"), False),
        ("", ("b",), False),
    ],
)
def test_only_a_secret_that_is_not_mounted_needs_another_application(
    mounted: str, needed: tuple[str, ...], is_kept: bool
) -> None:
    """Clusters leave and return without a restart.

    Pods cannot mount what they did not mount from the beginning.
    """
    running = spark_application()
    running["metadata"]["annotations"][SECRETS_ANNOTATION] = mounted
    decided = decision([running], [driver_pod()], secrets=needed)

    assert (decided.delete == ()) is is_kept
    assert is_kept or decided.message.startswith("Secret b has to be mounted")


def test_the_first_application_is_created_once_splits_are_assigned() -> None:
    assert decision([], []).create == "orders-1"
    assert decision([], [], may_start=False).create == ""


def test_nothing_starts_while_a_driver_of_an_older_application_lives() -> None:
    decided = decision([], [driver_pod("orders-1")])

    assert (decided.create, decided.reason) == ("", "WaitingForOldApplication")


def test_an_ended_driver_pod_does_not_delay_the_next_one() -> None:
    assert decision([], [driver_pod("orders-1", phase="Failed")]).create == "orders-1"


@pytest.mark.parametrize(
    ("state", "want"),
    [
        ("", ApplicationState.PENDING),
        ("SUBMITTED", ApplicationState.PENDING),
        ("SUBMISSION_FAILED", ApplicationState.PENDING),
        ("RUNNING", ApplicationState.RUNNING),
        ("UNKNOWN", ApplicationState.DEGRADED),
        ("FAILING", ApplicationState.STOPPING),
        ("SOMETHING_NEW", ApplicationState.DEGRADED),
    ],
)
def test_an_application_is_watched_and_never_changed_during_its_submission(
    state: str, want: ApplicationState
) -> None:
    decided = decision([spark_application(state=state)], [])

    assert (decided.state, decided.delete, decided.create) == (want, (), "")


def test_changed_settings_replace_the_application_and_wait_for_its_driver() -> None:
    old = spark_application(spec_hash="before")

    first = decision([old], [driver_pod()])
    leaving = spark_application(spec_hash="before", deletionTimestamp=CREATED)
    second = decision([leaving], [driver_pod()])
    third = decision([], [])

    assert (names(first.delete), first.create) == (["orders-1"], "")
    assert (second.delete, second.create) == ((), "")
    assert third.create == "orders-1"


@pytest.mark.parametrize(
    ("made_from", "is_kept"),
    [("2-b,a", True), ("a", True), ("2-b,x", True), ("2-x,a", False), ("x", False), ("", False)],
)
def test_an_application_is_compared_in_the_hash_version_that_it_was_made_with(
    made_from: str, is_kept: bool
) -> None:
    """An upgrade of the operator deletes nothing; another change of the settings still does."""
    decided = decision([spark_application(spec_hash=made_from)], [driver_pod()], spec_hash="2-b,a")

    assert (decided.delete == ()) is is_kept


def test_a_new_application_gets_the_next_number() -> None:
    leaving = spark_application("orders-3", deletionTimestamp=CREATED)

    assert decision([leaving], []).create == ""
    assert decision([spark_application("orders-3", spec_hash="x")], []).create == ""


def test_the_older_of_two_matching_applications_stays() -> None:
    decided = decision([spark_application("orders-2"), spark_application("orders-1")], [])

    assert names(decided.delete) == ["orders-2"]


def test_failed_with_a_living_driver_is_left_alone_and_said() -> None:
    decided = decision([spark_application(state="FAILED")], [driver_pod()], now=NOW + 9999)

    assert (decided.state, decided.delete) == (ApplicationState.RUNNING, ())
    assert decided.reason == "ApplicationStateWrong"


def test_a_failed_application_without_a_driver_is_recreated_after_a_while() -> None:
    failed = [spark_application(state="FAILED")]

    assert decision(failed, [], now=NOW).delete == ()
    assert decision(failed, [], now=NOW).look_again == pytest.approx(20)
    assert names(decision(failed, [], now=NOW + 30).delete) == ["orders-1"]
    assert decision(failed, [], now=NOW + 30).look_again > 0, "until the watch tells: no hot loop"


def test_a_stuck_application_is_recreated_only_without_a_driver() -> None:
    stuck = [spark_application(state="PENDING_RERUN")]

    assert names(decision(stuck, [], now=NOW + 300).delete) == ["orders-1"]
    assert decision(stuck, [driver_pod()], now=NOW + 300).delete == ()


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        ("", "ApplicationStuck"),
        ("SUBMITTED", "ApplicationStuck"),
        ("SUCCEEDING", "ApplicationStuck"),
        ("FAILING", "ApplicationRestarting"),
        ("PENDING_RERUN", "ApplicationRestarting"),
        ("SUBMISSION_FAILED", "SubmissionFailed"),
    ],
)
def test_a_long_pause_before_the_next_attempt_says_nothing_about_the_spark_operator(
    state: str, reason: str
) -> None:
    """Its pauses grow by 10 s with each attempt, also with attempts months ago."""
    waiting = spark_application(state=state)
    waiting["status"] |= {"executionAttempts": 40}
    waiting["status"]["applicationState"]["errorMessage"] = "out of memory"

    decided = decision([waiting], [], now=NOW + 300)

    assert decided.problem is not None
    assert (decided.problem.reason, names(decided.delete)) == (reason, ["orders-1"])
    is_retried = reason != "ApplicationStuck"
    assert ("out of memory" in decided.message) is is_retried
    assert ("check that the Spark operator runs" in decided.message) is not is_retried
    assert decided.failures == (40 if is_retried else 0), "the next one continues to count"


@pytest.mark.parametrize(("state", "phase"), [("SUBMITTED", "Pending"), ("FAILING", "Running")])
def test_a_living_driver_beyond_the_deadline_costs_no_turns(state: str, phase: str) -> None:
    application, pod = spark_application(state=state), driver_pod(phase=phase)

    assert decision([application], [pod], now=NOW + 299).look_again == 1
    assert decision([application], [pod], now=NOW + 300).look_again is None


@pytest.mark.parametrize("phase", ["Pending", "Running"])
def test_a_state_that_lags_behind_a_running_driver_is_named_after_the_deadline(phase: str) -> None:
    submitted, pod = [spark_application(state="SUBMITTED")], [driver_pod(phase=phase)]

    assert decision(submitted, pod, now=NOW + 299).problem is None
    late = decision(submitted, pod, now=NOW + 300).problem
    if phase == "Pending":
        assert late is None
    else:
        assert late is not None
        assert late.reason == "ApplicationStateWrong"
        assert late.message.startswith("SparkApplication orders-1 has been SUBMITTED for 300 s")


def test_a_crash_after_days_is_not_taken_for_being_stuck() -> None:
    days = NOW + 3 * 86_400
    seen = Sightings().looked([spark_application(state="RUNNING")], now=NOW)
    crashed = spark_application(state="PENDING_RERUN")

    decided = decision([crashed], [], now=days + 299, since=days)

    assert (decided.delete, decided.state) == ((), ApplicationState.PENDING)
    assert seen.looked([crashed], now=days).seconds(crashed, now=days) == 0
    assert (
        seen.looked([crashed], now=days)
        .looked([crashed], now=days + 5)
        .seconds(crashed, now=days + 9)
        == 9
    )


def test_suspend_stops_the_application_and_is_done_when_no_driver_lives() -> None:
    running = stop([spark_application()], [driver_pod()])
    stopping = stop([], [driver_pod()])
    paused = stop([], [])

    assert names(running.delete) == ["orders-1"]
    assert [d.state for d in (stopping, paused)] == [
        ApplicationState.STOPPING,
        ApplicationState.PAUSED,
    ]
    assert paused.create == ""


def test_a_failed_application_with_a_living_driver_is_said_before_anything_is_decided() -> None:
    failed = spark_application(state="FAILED")
    seen = look([failed], [driver_pod()], until="the state is read", now=NOW)
    assert seen == decision([failed], [driver_pod()])
    assert seen.state is not ApplicationState.NONE


@pytest.mark.parametrize(
    ("state", "given_up", "is_restart"),
    [
        ("RUNNING", "", True),
        ("RUNNING", "other", True),
        ("RUNNING", "former", False),
        ("SUBMITTED", "", False),
        ("FAILED", "", False),
    ],
)
def test_only_what_ran_with_settings_that_may_work_is_restarted(
    state: str, given_up: str, is_restart: bool
) -> None:
    """Others are replaced: there is nothing that a restart interrupts."""
    former = spark_application(state=state, spec_hash="former")
    decided = decision([former], [], given_up=given_up)

    assert names(decided.delete) == ["orders-1"]
    assert decided.is_restart is is_restart


def test_a_running_application_waits_for_a_host_that_takes_over() -> None:
    former = spark_application(spec_hash="former")
    hand_over = Hold(Reason.REPLACING_APPLICATION, "Its splits move first", look_again=5.0)
    decided = decision([former], [driver_pod()], hand_over=hand_over)

    assert (decided.delete, decided.state) == ((), ApplicationState.RUNNING)
    assert (decided.reason, decided.look_again) == (Reason.REPLACING_APPLICATION, 5.0)
    assert decided.message.endswith("orders-1 has not been restarted yet. Its splits move first")
    assert decided.pending is not None
    assert decided.pending.scope == "orders-1"
    assert names(decision([former], []).delete) == ["orders-1"], "it waits for nothing"


def test_of_several_secrets_the_first_by_name_is_the_one_that_is_named() -> None:
    secrets = tuple(f"secret-{number:02}" for number in range(30, 10, -1))
    words = decision([spark_application()], [driver_pod()], secrets=secrets).message

    assert words.startswith("Secret secret-11 has to be mounted")
