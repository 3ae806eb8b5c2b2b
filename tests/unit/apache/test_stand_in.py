"""The stand-in for Apache's operator does what its release 1.0.0 does, as far as it is known."""

import hashlib
from typing import Any

import pytest

from balanced_source_operator.resources.kinds import APACHE_APPLICATION, POD
from support.apache_operator import (
    ATTEMPTS,
    GRACE,
    STATES,
    ApacheOperator,
    application_id,
    program_of,
    settings_of,
)
from support.fake_kubernetes import BUILT_IN, FakeKubernetes

pytestmark = pytest.mark.asyncio  # the API server in memory calls its watchers on a loop


class Scene:
    """One application and its node."""

    def __init__(self, **spec: Any) -> None:
        self.now = 1_750_000_000.0
        self.server = FakeKubernetes(kinds=(*BUILT_IN, APACHE_APPLICATION))
        self.operator = ApacheOperator(self.server, lambda: self.now)
        given = {
            "runtimeVersions": {"sparkVersion": "4.2.0"},
            "driverSpec": {"podTemplateSpec": {"spec": {}}},
            "sparkConf": {"spark.kubernetes.driver.label.team": "shop"},
        }
        manifest = {
            "metadata": {"namespace": "default", "name": "orders-1"},
            "spec": {**given, **spec},
        }
        self.server.add(APACHE_APPLICATION, manifest)

    def look(self, times: int = 1) -> str:
        return [self.operator.look("default", "orders-1") for _ in range(times)][-1]

    def until(self, state: str) -> None:
        for _ in range(10):
            if self.look() == state:
                return
        raise AssertionError(f"{state} was not reached: {self.history}")

    @property
    def application(self) -> dict[str, Any]:
        found: dict[str, Any] = self.server.find(APACHE_APPLICATION, "default", "orders-1")
        return found

    @property
    def history(self) -> list[str]:
        found = self.application["status"]["stateTransitionHistory"]
        return [found[str(n)]["currentStateSummary"] for n in range(len(found))]

    @property
    def driver(self) -> str:
        return self.operator.driver_name(self.application)

    @property
    def attempt(self) -> dict[str, int]:
        found: dict[str, int] = self.application["status"]["currentAttemptSummary"]["attemptInfo"]
        return found

    def pod(self, **status: Any) -> None:
        self.server.edit(POD, "default", self.driver, {"status": status})

    def running(self) -> None:
        self.until("DriverRequested")
        self.pod(phase="Running", conditions=[{"type": "Ready", "status": "True"}])
        self.until("RunningHealthy")


def restarts(**config: Any) -> dict[str, Any]:
    return {"applicationTolerations": {"restartConfig": config}}


async def test_attempts_count_from_0_and_each_has_a_driver_pod_of_another_name() -> None:
    scene = Scene(**restarts(restartPolicy="Always", restartBackoffMillis=0))
    scene.running()
    names = [scene.driver]
    scene.pod(phase="Failed")
    scene.until("Submitted")
    names.append(scene.driver)
    assert names == ["orders-1-0-driver", "orders-1-1-driver"]
    assert scene.attempt["id"] == 1


async def test_a_long_name_becomes_its_beginning_and_a_hash_in_base_36() -> None:
    name = "a" * 45
    assert application_id("shop", "b" * 44, 0) == f"{'b' * 44}-0", "46 characters"
    made = application_id("shop", name, 10)
    digest = hashlib.sha256(f"shop/{name}/10".encode()).hexdigest()
    assert (made[:10], len(made)) == ("aaaaaaaaa-", 46)
    whole = application_id("shop", name, 10).split("-")[1]
    assert _base36(int(digest, 16))[:36] == whole
    assert application_id("shop", name, 11) != made


def _base36(number: int) -> str:
    digits = "0123456789abcdefghijklmnopqrstuvwxyz"
    return (_base36(number // 36) if number >= 36 else "") + digits[number % 36]


async def test_a_driver_pod_has_the_template_and_labels_of_its_application() -> None:
    scene = Scene(driverSpec={"podTemplateSpec": {"spec": {"nodeName": "here"}}})
    scene.until("DriverRequested")
    pod = scene.server.find(POD, "default", scene.driver)
    assert pod["metadata"]["ownerReferences"][0]["uid"] == scene.application["metadata"]["uid"]
    labels = {"spark-role": "driver", "spark.operator/spark-app-name": "orders-1", "team": "shop"}
    assert (pod["metadata"]["labels"], pod["spec"]) == (labels, {"nodeName": "here"})


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, {"spark.authenticate": "true", "spark.io.encryption.enabled": "true"}),
        ({}, {"spark.kubernetes.driver.annotateExitException": "true"}),
        ({}, {"spark.kubernetes.executor.useDriverPodIP": "true"}),
        ({}, {"spark.kubernetes.executor.deleteOnTermination": "false"}),
        (restarts(restartPolicy="Always"), {"spark.kubernetes.executor.deleteOnTermination": None}),
        (
            {"sparkConf": {"spark.dynamicAllocation.enabled": "true"}},
            {"spark.kubernetes.executor.deleteOnTermination": None},
        ),
        ({"sparkConf": {"spark.authenticate": "false"}}, {"spark.authenticate": "false"}),
        (
            {"sparkConf": {"spark.kubernetes.namespace": "elsewhere"}},
            {"spark.kubernetes.namespace": "default"},
        ),
        (
            {"sparkConf": {"spark.kubernetes.container.image": "spark:{{SPARK_VERSION}}"}},
            {"spark.kubernetes.container.image": "spark:4.2.0"},
        ),
    ],
)
async def test_settings_that_it_sets_unless_given(
    spec: dict[str, Any], expected: dict[str, str | None]
) -> None:
    found = settings_of(Scene(**spec).application)
    assert {key: found.get(key) for key in expected} == expected


async def test_the_program_is_the_first_of_the_python_files_with_sparks_python_runner() -> None:
    runner = {"mainClass": "org.apache.spark.deploy.PythonRunner", "pyFiles": "main.py,a.py,b.zip"}
    assert program_of(Scene(**runner).application) == ("main.py", ["a.py", "b.zip"])
    assert program_of(Scene(pyFiles="main.py").application) == ("main.py", [])


async def test_its_status_has_the_present_state_all_states_and_the_attempt() -> None:
    scene = Scene()
    scene.running()
    assert scene.history == ["Submitted", "DriverRequested", "DriverReady", "RunningHealthy"]
    status = scene.application["status"]
    assert status["currentState"] == status["stateTransitionHistory"]["3"]
    assert status["currentState"].keys() == {"currentStateSummary", "lastTransitionTime", "message"}
    counters = {"restartCounter", "failureRestartCounter", "schedulingFailureRestartCounter"}
    assert scene.attempt.keys() == {"id", *counters}


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ({"phase": "Failed"}, "Failed"),
        ({"phase": "Failed", "reason": "Evicted"}, "DriverEvicted"),
        ({"phase": "Succeeded"}, "Succeeded"),
        ({"phase": "Running", "containerStatuses": [{"restartCount": 1}]}, "Failed"),
    ],
)
async def test_the_driver_pod_decides_what_a_running_application_is(
    status: dict[str, Any], state: str
) -> None:
    scene = Scene()
    scene.running()
    scene.pod(**status)
    assert scene.look() == state


async def test_a_driver_that_succeeds_before_it_was_ready_has_failed() -> None:
    scene = Scene()
    scene.until("DriverRequested")
    scene.pod(phase="Succeeded")
    assert scene.look() == "Failed"


async def test_states_never_go_back_within_an_attempt() -> None:
    scene = Scene()
    scene.running()
    scene.pod(phase="Running", conditions=[])
    assert scene.look() == "RunningHealthy"
    assert STATES.index("DriverStarted") < STATES.index("RunningHealthy") < STATES.index("Failed")


async def test_a_pod_that_is_gone_counts_after_a_minute() -> None:
    scene = Scene()
    scene.running()
    scene.server.remove(POD, "default", scene.driver)
    assert scene.look() == "RunningHealthy"
    scene.now += GRACE - 1
    assert scene.look() == "RunningHealthy"
    scene.now += 1
    assert scene.look() == "Failed"


async def test_without_restart_settings_an_application_never_starts_again() -> None:
    scene = Scene()
    scene.running()
    scene.pod(phase="Failed")
    scene.until("ResourceReleased")
    assert scene.look() == "ResourceReleased"
    assert scene.server.select(POD, "default") == []


async def test_a_policy_without_a_number_allows_three_restarts() -> None:
    scene = Scene(**restarts(restartPolicy="OnFailure", restartBackoffMillis=0))
    for _ in range(ATTEMPTS + 1):
        scene.running()
        scene.pod(phase="Failed")
        scene.look(2)
    assert (scene.history[-1], scene.attempt["restartCounter"]) == ("ResourceReleased", ATTEMPTS)


@pytest.mark.parametrize("policy", ["Always", "OnFailure"])
async def test_with_restarts_the_pod_of_a_failed_driver_is_not_kept(policy: str) -> None:
    """Whatever `resourceRetainPolicy` says, also after the last attempt."""
    given = restarts(restartPolicy=policy, restartBackoffMillis=0, maxRestartAttempts=1)
    given["applicationTolerations"]["resourceRetainPolicy"] = "Always"
    scene = Scene(**given)
    for state in ("ScheduledToRestart", "TerminatedWithoutReleaseResources"):
        scene.running()
        scene.pod(phase="Failed")
        scene.until(state)
        assert scene.server.select(POD, "default") == []


@pytest.mark.parametrize(
    ("limits", "state"),
    [
        ({}, "DriverStartTimedOut"),
        ({"driverStartTimeoutMillis": 600_000}, "DriverRequested"),
        ({"driverStartTimeoutMillis": 0}, "DriverRequested"),
    ],
    ids=["default", "longer", "none"],
)
async def test_a_driver_that_does_not_start_has_failed_after_five_minutes_unless_told_otherwise(
    limits: dict[str, int], state: str
) -> None:
    scene = Scene(applicationTolerations={"applicationTimeoutConfig": limits})
    scene.until("DriverRequested")
    scene.now += 301
    assert scene.look() == state


async def test_a_driver_pod_that_is_refused_ends_the_attempt_with_the_answer() -> None:
    scene = Scene()
    scene.operator.refusal = "exceeded quota"
    assert scene.look(2) == "SchedulingFailure"
    assert scene.application["status"]["currentState"]["message"] == "exceeded quota"


async def test_the_next_attempt_waits_for_the_backoff() -> None:
    scene = Scene(**restarts(restartPolicy="Always"))
    scene.running()
    scene.pod(phase="Failed")
    scene.until("ScheduledToRestart")
    scene.now += 29
    assert scene.look() == "ScheduledToRestart"
    scene.now += 1
    assert scene.look() == "Submitted"


async def test_a_long_run_starts_the_counter_at_1_again() -> None:
    scene = Scene(
        **restarts(restartPolicy="Always", restartBackoffMillis=0, restartCounterResetMillis=60_000)
    )
    for seconds in (1, 1, 61):
        scene.running()
        scene.now += seconds
        scene.pod(phase="Failed")
        scene.until("ScheduledToRestart")
    assert scene.attempt["restartCounter"] == 1


@pytest.mark.parametrize(
    ("policy", "kept"), [("Always", True), ("OnFailure", True), ("Never", False)]
)
async def test_a_retained_application_ends_in_another_state(policy: str, *, kept: bool) -> None:
    scene = Scene(applicationTolerations={"resourceRetainPolicy": policy})
    scene.running()
    scene.pod(phase="Failed")
    scene.until("TerminatedWithoutReleaseResources" if kept else "ResourceReleased")
    assert bool(scene.server.select(POD, "default")) is kept


async def test_a_changed_spec_does_nothing_until_the_next_attempt() -> None:
    scene = Scene(**restarts(restartPolicy="Always", restartBackoffMillis=0))
    scene.running()
    template = {"podTemplateSpec": {"spec": {"nodeName": "there"}}}
    scene.server.edit(
        APACHE_APPLICATION,
        "default",
        "orders-1",
        {"spec": {"driverSpec": template, "suspend": True}},
    )
    assert scene.look() == "RunningHealthy"
    scene.server.edit(POD, "default", scene.driver, {"status": {"phase": "Failed"}})
    scene.until("DriverRequested")
    assert scene.server.find(POD, "default", scene.driver)["spec"] == {"nodeName": "there"}
