"""Why an application does not read: its state and its pods in, the cause and what to do out."""

from typing import Any

import pytest

from balanced_source_operator.controller.application import decide
from balanced_source_operator.controller.application_facts import ApplicationState
from balanced_source_operator.controller.decisions import Deadlines, Decision, Sightings, Wanted
from balanced_source_operator.resources.kinds import FAILURES_ANNOTATION
from support.builders import driver_pod, spark_application

NOW = 1_767_225_600.0
CREATED = "2026-01-01T00:00:00Z"
DEADLINES = Deadlines(stuck_after=300, retry_failed_after=30)


def decided(
    state: str, *pods: dict[str, Any], now: float = NOW, failures: int = 0, **changes: Any
) -> Decision:
    application = spark_application(state=state)
    application["metadata"]["annotations"][FAILURES_ANNOTATION] = str(failures)
    application["status"]["applicationState"]["errorMessage"] = "driver container failed"
    wanted = Wanted(**{"base": "orders", "spec_hash": "h", "may_start": True, **changes})
    seen = Sightings().looked([application], now=now)
    return decide(wanted, [application], pods, seen=seen, deadlines=DEADLINES, now=now)


def pod(
    *,
    waiting: dict[str, str] | None = None,
    terminated: dict[str, Any] | None = None,
    **status: Any,
) -> Any:
    made = driver_pod(phase=status.pop("phase", "Pending"))
    state = {"waiting": waiting} if waiting else {"terminated": terminated} if terminated else {}
    made["status"] |= {
        "containerStatuses": [{"name": "spark-kubernetes-driver", "state": state}],
        **status,
    }
    return made


def problem(decision: Decision) -> tuple[str, str]:
    assert decision.problem is not None
    return str(decision.problem.reason), decision.problem.message


@pytest.mark.parametrize(
    ("state", "reason", "words"),
    [
        (
            "SUBMISSION_FAILED",
            "SubmissionFailed",
            ["could not be submitted: driver container failed", "Correct"],
        ),
        (
            "UNKNOWN",
            "ApplicationUnknown",
            ["orders-1 is in state UNKNOWN", "Check the driver's node"],
        ),
        (
            "PENDING_RERUN",
            "ApplicationRestarting",
            ["The driver of SparkApplication orders-1 failed", "see the log"],
        ),
        ("FAILING", "ApplicationRestarting", ["driver container failed"]),
        ("SUSPENDED", "ApplicationSuspended", ["suspended by its own spec.suspend", "delete"]),
        ("SUSPENDING", "ApplicationSuspended", ["so nothing is read"]),
        ("DREAMING", "ApplicationUnknown", ["'DREAMING', which this release does not know"]),
        (
            "COMPLETED",
            "ApplicationEnded",
            ["has ended although its source is unbounded", "awaitTermination"],
        ),
    ],
)
def test_a_state_in_which_nothing_is_read_is_a_problem(
    state: str, reason: str, words: list[str]
) -> None:
    said = problem(decided(state))

    assert said[0] == reason
    assert all(word in said[1] for word in words), said


@pytest.mark.parametrize("state", ["", "SUBMITTED", "RUNNING", "RESUMING", "INVALIDATING"])
def test_a_state_on_the_way_is_not_a_problem(state: str) -> None:
    assert decided(state).problem is None


def test_a_bounded_application_may_complete() -> None:
    assert decided("COMPLETED", may_end=True).problem is None


@pytest.mark.parametrize(("waited", "is_told"), [(0, False), (29, False), (30, True)])
def test_a_bounded_application_that_ends_early_is_told_once_its_last_report_must_be_here(
    waited: int, is_told: bool
) -> None:
    application = spark_application(state="COMPLETED")
    wanted = Wanted(base="orders", spec_hash="h", may_start=True, may_end=True, is_unread=True)
    seen = Sightings().looked([application], now=NOW)

    told = decide(wanted, [application], [], seen=seen, deadlines=DEADLINES, now=NOW + waited)

    assert told.state is ApplicationState.FINISHED
    assert not told.delete
    if is_told:
        assert problem(told)[0] == "ApplicationEnded"
        assert "was not read to its end" in problem(told)[1]
    else:
        assert (told.problem, told.look_again) == (None, 30 - waited)


@pytest.mark.parametrize(("waited", "is_over"), [(0, False), (29, False), (30, True)])
def test_an_application_whose_host_got_splits_after_its_end_is_started_again(
    waited: int, is_over: bool
) -> None:
    """Its last report may still come, and say that these splits are read as well."""
    application = spark_application(state="COMPLETED")
    wanted = Wanted(
        base="orders",
        spec_hash="h",
        may_start=True,
        may_end=True,
        is_unread=True,
        may_read_more=True,
    )
    seen = Sightings().looked([application], now=NOW)

    told = decide(wanted, [application], [], seen=seen, deadlines=DEADLINES, now=NOW + waited)

    assert told.problem is None
    assert told.delete == ((application,) if is_over else ())
    assert told.look_again == (None if is_over else 30 - waited)


@pytest.mark.parametrize(
    ("reason", "advice"),
    [
        ("ImagePullBackOff", "Correct spec.application.image"),
        ("InvalidImageName", "Correct spec.application.image"),
        ("CreateContainerConfigError", "Create the Secret"),
        ("CrashLoopBackOff", "See the log"),
    ],
)
def test_a_driver_that_cannot_start_is_named_with_the_cause(reason: str, advice: str) -> None:
    said = problem(decided("SUBMITTED", pod(waiting={"reason": reason, "message": "why it is so"})))

    assert said[0] == "DriverCannotStart"
    assert f"Driver pod orders-1-driver cannot start: {reason}: why it is so. {advice}" in said[1]


def test_a_driver_that_is_being_created_is_not_a_problem() -> None:
    assert decided("SUBMITTED", pod(waiting={"reason": "ContainerCreating"})).problem is None


def test_a_driver_without_a_node_is_a_problem_after_a_while() -> None:
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "0/3 nodes are available: 3 Insufficient cpu.",
        "lastTransitionTime": CREATED,
    }
    waiting = pod(conditions=[condition])

    assert decided("SUBMITTED", waiting, now=NOW + 29).problem is None
    said = problem(decided("SUBMITTED", waiting, now=NOW + 30))
    assert said[0] == "DriverUnschedulable"
    assert "3 Insufficient cpu. Add nodes" in said[1]


def test_an_out_of_memory_kill_is_named() -> None:
    killed = pod(terminated={"reason": "OOMKilled", "exitCode": 137}, phase="Failed")

    said = problem(decided("PENDING_RERUN", killed))[1]

    assert (
        "pod orders-1-driver: OOMKilled (exit code 137): raise spark.driver.memoryOverhead in"
        " spec.application.sparkConf, or spec.application.driver.memory if the log has"
        " OutOfMemoryError" in said
    )


@pytest.mark.parametrize("state", ["state", "lastState"])
@pytest.mark.parametrize(
    ("ended", "says"),
    [
        ({"reason": "OOMKilled", "exitCode": 0}, "OOMKilled (exit code 0): raise spark"),
        ({"reason": "Error", "exitCode": 2}, "Error (exit code 2)"),
        ({"reason": "Error", "exitCode": 11}, "Error (exit code 11): executors ended or were refu"),
        ({"reason": "Error", "exitCode": 137}, "Error (exit code 137): it was killed (SIGKILL)"),
        ({"reason": "Error", "exitCode": 143}, "Error (exit code 143): it was asked to end"),
        ({"exitCode": 2}, "Error (exit code 2)"),
        ({"reason": "Completed", "exitCode": 0}, ""),
        ({"reason": "Completed"}, ""),
    ],
)
def test_a_container_that_ended_with_an_error_is_named(
    state: str, ended: dict[str, Any], says: str
) -> None:
    """The kubelet kills a child process of a container that ends with 0 all the same."""
    killed = pod(terminated=ended, phase="Failed")
    (container,) = killed["status"]["containerStatuses"]
    container[state] = container.pop("state")

    words = problem(decided("PENDING_RERUN", killed))[1]

    assert says in words
    assert ("pod orders-1-driver" in words) is bool(says)


def test_an_evicted_driver_is_named_with_the_message_of_the_kubelet() -> None:
    evicted = pod(phase="Failed", reason="Evicted", message="The node was low on memory")
    silent = pod(phase="Failed", reason="Evicted")

    words = problem(decided("PENDING_RERUN", evicted))[1]

    assert "pod orders-1-driver: Evicted: The node was low on memory" in words
    assert "pod orders-1-driver: Evicted" in problem(decided("PENDING_RERUN", silent))[1]


def test_the_last_words_of_a_driver_are_in_the_message_without_secrets() -> None:
    reason = "spec.application.pipeline.sink.options: the option path is missing. Set it"
    ended = {"reason": "Error", "exitCode": 1, "message": f"{reason} password=hunter2\n"}

    words = problem(decided("PENDING_RERUN", pod(terminated=ended, phase="Failed")))[1]

    assert f"(exit code 1); {reason} password=[redacted]. The Spark operator restarts it" in words
    assert "hunter2" not in words


def test_the_end_of_a_drivers_output_says_what_was_raised_without_secrets() -> None:
    output = """    df = spark.table("orders")
ValueError: cannot read with password=hunter2
26/11/29 10:00:00 INFO ShutdownHookManager: Shutdown hook called
"""
    ended = {"reason": "Error", "exitCode": 1, "message": output}

    words = problem(decided("PENDING_RERUN", pod(terminated=ended, phase="Failed")))[1]

    assert "(exit code 1); ValueError: cannot read with password=[redacted]" in words
    assert "hunter2" not in words
    assert "Shutdown" not in words


@pytest.mark.parametrize(
    ("before", "pause"), [(0, 30), (1, 60), (2, 120), (4, 480), (5, 600), (99, 600)]
)
def test_a_failed_application_is_kept_longer_after_each_failure(before: int, pause: int) -> None:
    early, late = (decided("FAILED", now=NOW + at, failures=before) for at in (pause - 1, pause))
    with_log = decided("FAILED", pod(phase="Failed"), now=NOW + 1, failures=before)

    assert (early.delete, len(late.delete)) == ((), 1)
    said = problem(early)
    assert said[0] == "ApplicationFailed"
    assert f"failed ({before + 1} in a row): driver container failed" in said[1]
    assert f"It is kept for {pause} s after the failure" in said[1]
    assert f"kept with its driver's log for {pause} s" in problem(with_log)[1]


def test_at_the_limit_a_failed_application_stays_with_its_log() -> None:
    stays = decided("FAILED", now=NOW + 9999, failures=2, max_failures=3)

    assert (stays.delete, stays.create, stays.state) == ((), "", ApplicationState.FAILED)
    said = problem(stays)
    assert said[0] == "RestartLimitReached"
    assert "spec.restart.maxFailures is 3" in said[1]
    assert len(decided("FAILED", now=NOW + 9999, failures=2, max_failures=4).delete) == 1


def test_an_application_that_ran_for_long_begins_a_new_row() -> None:
    application = spark_application(state="FAILED")
    application["metadata"]["annotations"][FAILURES_ANNOTATION] = "7"
    application["status"] |= {
        "lastSubmissionAttemptTime": "2025-12-31T00:00:00Z",
        "terminationTime": CREATED,
        "executionAttempts": 5,
    }
    seen = Sightings().looked([application], now=NOW)
    wanted = Wanted(base="orders", spec_hash="h", may_start=True, max_failures=3)

    again = decide(wanted, [application], [], seen=seen, deadlines=DEADLINES, now=NOW + 30)

    assert len(again.delete) == 1


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ({"waiting": {"reason": "ContainerCreating"}}, "300 s (ContainerCreating). See its events"),
        ({}, "300 s. See its events (kubectl describe pod orders-1-driver)"),
        (
            {
                "conditions": [
                    {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}
                ]
            },
            "300 s (SchedulingGated)",
        ),
        (
            {
                "conditions": [
                    {"type": "PodScheduled", "status": "True", "reason": "Placed"},
                    {"type": "PodScheduled", "status": "False"},
                    {"type": "Ready", "status": "False", "reason": "ContainersNotReady"},
                ]
            },
            "300 s. See its events",
        ),
    ],
)
def test_a_driver_whose_containers_do_not_start_is_a_problem_after_a_while(
    status: dict[str, Any], words: str
) -> None:
    """A missing volume, for example, is in events of the pod alone."""
    made = pod(**status)
    made["metadata"]["creationTimestamp"] = CREATED

    assert decided("SUBMITTED", made, now=NOW + 299).problem is None
    found = problem(decided("SUBMITTED", made, now=NOW + 300))
    assert found[0] == "DriverCannotStart"
    assert words in found[1]
    made["status"]["phase"] = "Running"
    assert decided("RUNNING", made, now=NOW + 9000).problem is None


def test_a_pod_of_unknown_age_has_not_been_starting_for_long() -> None:
    assert decided("SUBMITTED", pod(), now=NOW + 9000).problem is None
