"""A stand-in for Apache's Spark operator 1.0.0, on the API server in memory.

It is not that operator.

It does what the operator's source says of names, settings, states and restarts. It submits nothing:
a driver pod appears where Spark's own submission would make one, and a test plays the node. What it
cannot show is listed in docs/reference/compatibility.md.
"""

import hashlib
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from balanced_source_operator.resources.kinds import APACHE_APPLICATION, POD
from support.fake_kubernetes import FakeKubernetes

STATES: Final = (
    "Submitted",
    "ScheduledToRestart",
    "DriverRequested",
    "DriverStarted",
    "DriverReady",
    "InitializedBelowThresholdExecutors",
    "RunningHealthy",
    "RunningWithPartialCapacity",
    "RunningWithBelowThresholdExecutors",
    "DriverStartTimedOut",
    "ExecutorsStartTimedOut",
    "DriverReadyTimedOut",
    "Succeeded",
    "Failed",
    "SchedulingFailure",
    "DriverEvicted",
    "ResourceReleased",
    "TerminatedWithoutReleaseResources",
)
"""In the operator's order, which it compares states by."""

GRACE: Final = 60.0
"""Seconds for which a driver pod may be missing before it counts as gone."""

LONGEST_ID: Final = 46
BACKOFF_MILLIS: Final = 30_000
ATTEMPTS: Final = 3

FAILED: Final = (
    "Driver has one or more failed critical container(s), refer last observed status for details"
)
"""All that it says of a driver that has failed; the pod's own status says why."""

TIME_OUTS: Final[Mapping[str, tuple[str, str]]] = {
    "DriverRequested": ("driverStartTimeoutMillis", "DriverStartTimedOut"),
    "DriverStarted": ("driverReadyTimeoutMillis", "DriverReadyTimedOut"),
    "DriverReady": ("executorStartTimeoutMillis", "ExecutorsStartTimedOut"),
}
"""State → how long it may last, in milliseconds, and what follows; 0 is without a limit."""

TIME_OUT_MILLIS: Final = 300_000
"""Each of them, unless it is given."""

_FAILURES: Final = frozenset(STATES[9:12] + STATES[13:16])
_ENDS: Final = frozenset(STATES[16:])
_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
_PYTHON_RUNNER: Final = "org.apache.spark.deploy.PythonRunner"
_SETTINGS: Final[Mapping[str, str]] = {
    "spark.authenticate": "true",
    "spark.io.encryption.enabled": "true",
    "spark.kubernetes.driver.annotateExitException": "true",
    "spark.kubernetes.executor.useDriverPodIP": "true",
}


def application_id(namespace: str, name: str, attempt: int) -> str:
    """Return the id of an attempt, which counts from 0."""
    plain = f"{name}-{attempt}"
    if len(plain) <= LONGEST_ID:
        return plain
    number = int.from_bytes(
        hashlib.sha256(f"{namespace}/{name}/{attempt}".encode()).digest(), "big"
    )
    digits = ""
    while number:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
    return f"{plain[:9]}-{digits[:36]}"


def settings_of(application: Mapping[str, Any]) -> dict[str, str]:
    """Return the Spark settings of a submission."""
    given = dict(application["spec"].get("sparkConf") or {})
    version = application["spec"]["runtimeVersions"]["sparkVersion"]
    for key in [key for key in given if key.endswith("container.image")]:
        given[key] = given[key].replace("{{SPARK_VERSION}}", version)
    is_dynamic = given.get("spark.dynamicAllocation.enabled") == "true"
    policy = _restarts(application).get("restartPolicy", "Never")
    kept = (
        {"spark.kubernetes.executor.deleteOnTermination": "false"}
        if policy == "Never" and not is_dynamic
        else {}
    )
    forced = {"spark.kubernetes.namespace": application["metadata"]["namespace"]}
    return {**_SETTINGS, **kept, **given, **forced}


def program_of(application: Mapping[str, Any]) -> tuple[str, list[str]]:
    """Return the main file of a Python program, and the files that go to `spark.submit.pyFiles`."""
    files = str(application["spec"].get("pyFiles", "")).split(",")
    if application["spec"].get("mainClass") == _PYTHON_RUNNER:
        return files[0], files[1:]
    return application["spec"]["pyFiles"], []


class ApacheOperator:
    """Looks at applications when it is told to.

    Args:
        server: the API server.
        clock: seconds since the epoch.
    """

    def __init__(self, server: FakeKubernetes, clock: Callable[[], float]) -> None:
        self._server = server
        self._clock = clock
        self._missing: dict[str, float] = {}
        self.refusal = ""
        """What the API server answers to each driver pod; empty: it takes them."""

    def look(self, namespace: str, name: str) -> str:
        """Take an application on by at most one state; return that state."""
        application = self._server.find(APACHE_APPLICATION, namespace, name)
        if application is None:
            return ""
        status = application.get("status") or {}
        state = (status.get("currentState") or {}).get("currentStateSummary", "")
        match state:
            case "":
                self._move(application, "Submitted")
            case "Submitted":
                self._submit(application)
            case "ScheduledToRestart":
                self._restart(application)
            case _ if state in _ENDS:
                return str(state)
            case _ if state in _FAILURES or state == "Succeeded":
                self._end_attempt(application, state)
            case _:
                self._look_at_driver(application, state)
        found = self._server.find(APACHE_APPLICATION, namespace, name)
        return str(found["status"]["currentState"]["currentStateSummary"])

    def driver_name(self, application: Mapping[str, Any]) -> str:
        """Return the name of the present attempt's driver pod."""
        metadata = application["metadata"]
        number = _info(application)["id"]
        return f"{application_id(metadata['namespace'], metadata['name'], number)}-driver"

    # --- an attempt -------------------------------------------------------------------------------

    def _submit(self, application: Mapping[str, Any]) -> None:
        if self.refusal:
            self._move(application, "SchedulingFailure", message=self.refusal)
            return
        metadata, settings = application["metadata"], settings_of(application)
        prefix = "spark.kubernetes.driver.label."
        labels = {
            key.removeprefix(prefix): value
            for key, value in settings.items()
            if key.startswith(prefix)
        }
        owner = {
            "apiVersion": APACHE_APPLICATION.api_version,
            "kind": APACHE_APPLICATION.kind,
            "name": metadata["name"],
            "uid": metadata["uid"],
        }
        pod = {
            "kind": "Pod",
            "metadata": {
                "namespace": metadata["namespace"],
                "name": self.driver_name(application),
                "labels": {
                    **labels,
                    "spark-role": "driver",
                    "spark.operator/spark-app-name": metadata["name"],
                },
                "ownerReferences": [owner],
            },
            "spec": application["spec"]["driverSpec"]["podTemplateSpec"]["spec"],
            "status": {"phase": "Pending"},
        }
        self._server.add(POD, pod)
        self._move(application, "DriverRequested")

    def _restart(self, application: Mapping[str, Any]) -> None:
        since = _seconds(application["status"]["currentState"])
        if (
            self._clock() - since
            >= _restarts(application).get("restartBackoffMillis", BACKOFF_MILLIS) / 1000
        ):
            self._move(application, "Submitted", info={"id": _info(application)["id"] + 1})

    def _look_at_driver(self, application: Mapping[str, Any], state: str) -> None:
        name, namespace = self.driver_name(application), application["metadata"]["namespace"]
        pod = self._server.find(POD, namespace, name)
        if pod is None:
            first = self._missing.setdefault(name, self._clock())
            if self._clock() - first >= GRACE:
                self._move(application, "Failed", message=f"driver pod {name} is gone")
            return
        self._missing.pop(name, None)
        verdict, message = _verdict(pod, state)
        if verdict and STATES.index(verdict) > STATES.index(state):
            self._move(application, verdict, message=message)
        elif (late := self._timed_out(application, state)) is not None:
            self._move(application, late, message="it took too long")

    def _timed_out(self, application: Mapping[str, Any], state: str) -> str | None:
        field, late = TIME_OUTS.get(state, ("", ""))
        limits = _tolerations(application).get("applicationTimeoutConfig", {})
        limit = limits.get(field, TIME_OUT_MILLIS) / 1000
        lasted = self._clock() - _seconds(application["status"]["currentState"])
        return late if late and 0 < limit < lasted else None

    def _end_attempt(self, application: Mapping[str, Any], state: str) -> None:
        restarts, info = _restarts(application), _info(application)
        policy = restarts.get("restartPolicy", "Never")
        is_wanted = policy == "Always" or (policy == "OnFailure" and state in _FAILURES)
        if policy != "Never":
            # also before its last state, whatever is to be kept
            self._remove_driver(application)
        if is_wanted and info["restartCounter"] < restarts.get("maxRestartAttempts", ATTEMPTS):
            self._move(application, "ScheduledToRestart", info=self._counted(application, state))
            return
        keep = _tolerations(application).get("resourceRetainPolicy", "Never")
        if keep == "Always" or (keep == "OnFailure" and state in _FAILURES):
            self._move(application, "TerminatedWithoutReleaseResources")
            return
        self._remove_driver(application)
        self._move(application, "ResourceReleased")

    def _remove_driver(self, application: Mapping[str, Any]) -> None:
        namespace, name = application["metadata"]["namespace"], self.driver_name(application)
        if self._server.find(POD, namespace, name) is not None:
            self._server.remove(POD, namespace, name)

    def _counted(self, application: Mapping[str, Any], state: str) -> dict[str, int]:
        info, reset = (
            _info(application),
            _restarts(application).get("restartCounterResetMillis", -1),
        )
        ran = self._clock() - _since_start(application)
        is_long = reset >= 0 and ran * 1000 >= reset
        return {
            "restartCounter": 1 if is_long else info["restartCounter"] + 1,
            "failureRestartCounter": info["failureRestartCounter"] + (state in _FAILURES),
            "schedulingFailureRestartCounter": info["schedulingFailureRestartCounter"]
            + (state == "SchedulingFailure"),
        }

    # --- its status -------------------------------------------------------------------------------

    def _move(
        self,
        application: Mapping[str, Any],
        state: str,
        *,
        message: str = "",
        info: Mapping[str, int] | None = None,
    ) -> None:
        status = application.get("status") or {}
        history = status.get("stateTransitionHistory") or {}
        stamp = datetime.fromtimestamp(self._clock(), UTC).isoformat()
        entry = {"currentStateSummary": state, "lastTransitionTime": stamp, "message": message}
        changed = {
            "currentState": entry,
            "stateTransitionHistory": {**history, str(len(history)): entry},
            "currentAttemptSummary": {"attemptInfo": {**_info(application), **(info or {})}},
        }
        metadata = application["metadata"]
        self._server.edit(
            APACHE_APPLICATION, metadata["namespace"], metadata["name"], {"status": changed}
        )


def _verdict(pod: Mapping[str, Any], state: str) -> tuple[str, str]:
    """Return the state that follows from a driver pod, and why."""
    status = pod.get("status") or {}
    containers = status.get("containerStatuses") or []
    if status.get("phase") == "Failed":
        is_evicted = status.get("reason") == "Evicted"
        return ("DriverEvicted" if is_evicted else "Failed"), FAILED
    if status.get("phase") == "Succeeded":
        was_ready = STATES.index(state) >= STATES.index("DriverReady")
        return (
            ("Succeeded", "") if was_ready else ("Failed", "the driver ended before it was ready")
        )
    if any(container.get("restartCount", 0) > 0 for container in containers):
        return "Failed", "the driver's container was restarted in place"
    if status.get("phase") != "Running":
        return "", ""
    if not any(
        c.get("type") == "Ready" and c.get("status") == "True"
        for c in status.get("conditions") or []
    ):
        return "DriverStarted", ""
    was_ready = STATES.index(state) >= STATES.index("DriverReady")
    return ("RunningHealthy" if was_ready else "DriverReady"), ""


def _info(application: Mapping[str, Any]) -> dict[str, int]:
    zero = {
        "id": 0,
        "restartCounter": 0,
        "failureRestartCounter": 0,
        "schedulingFailureRestartCounter": 0,
    }
    summary = (application.get("status") or {}).get("currentAttemptSummary") or {}
    return {**zero, **summary.get("attemptInfo", {})}


def _tolerations(application: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = application["spec"].get("applicationTolerations", {})
    return found


def _restarts(application: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = _tolerations(application).get("restartConfig", {})
    return found


def _since_start(application: Mapping[str, Any]) -> float:
    """When the present attempt was requested."""
    history = application["status"]["stateTransitionHistory"]
    requested = [
        _seconds(entry)
        for entry in history.values()
        if entry["currentStateSummary"] == "DriverRequested"
    ]
    return max(requested, default=0.0)


def _seconds(entry: Mapping[str, Any]) -> float:
    return datetime.fromisoformat(entry["lastTransitionTime"]).timestamp()
