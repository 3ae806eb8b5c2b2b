"""Why a SparkApplication does not read: from its own state, and from the statuses of its pods."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from balanced_source.api import Problem
from balanced_source.names import shown
from balanced_source.reasons import Reason
from balanced_source.redaction import redacted_text
from balanced_source_operator.controller.application_facts import KUBEFLOW_STATES, timestamp
from balanced_source_operator.controller.refusals import submission_refusal
from balanced_source_operator.controller.submission import failure_in, reason_in
from balanced_source_operator.kube.port import Manifest
from balanced_source_operator.resources.kinds import application_name

SCHEDULING_PATIENCE: Final = 30.0
"""Seconds for which a driver pod may wait for a node before it is a problem: an autoscaler may add
one."""

STARTING_PATIENCE: Final = 300.0
"""Seconds for which the containers of a driver pod may take to start before it is a problem: an
image may be large."""

_CANNOT_START: Final[Mapping[str, str]] = {
    "ErrImagePull": (
        "Correct spec.application.image, or name a Secret for the registry in imagePullSecrets"
    ),
    "ImagePullBackOff": (
        "Correct spec.application.image, or name a Secret for the registry in imagePullSecrets"
    ),
    "ErrImageNeverPull": "Correct spec.application.image or imagePullPolicy",
    "InvalidImageName": "Correct spec.application.image",
    "CreateContainerConfigError": "Create the Secret or ConfigMap that the pod template names",
    "CreateContainerError": "Correct the pod template in spec.application.driver",
    "RunContainerError": "Correct the pod template in spec.application.driver",
    "CrashLoopBackOff": "See the log of the pod",
}
"""Reasons for which a container waits and that do not pass by themselves, with what to do."""

NO_CAUSE: Final = "no cause is known"
"""What a message says of a failure of which nothing tells why."""

_LONGEST_MESSAGE: Final = 500
"""Characters of what a container says about its end."""


def diagnose(
    application: Manifest, pods: Sequence[Manifest], *, may_end: bool, now: float
) -> Problem | None:
    """Return the problem that keeps an application from reading; None if there is none.

    Args:
        application: the SparkApplication.
        pods: all pods of the source.
        may_end: whether the application is expected to complete: a bounded source, or the trigger
            availableNow.
        now: seconds since the epoch.
    """
    drivers = drivers_of(application, pods)
    for pod in drivers:
        problem = _cannot_start(pod) or _unschedulable(pod, now=now) or _slow(pod, now=now)
        if problem is not None:
            return problem
    return _of_state(application, drivers, may_end=may_end)


def cause(application: Manifest, pods: Sequence[Manifest]) -> str:
    """Return why an application failed, as far as its status and its driver pod's status tell."""
    state = application.get("status", {}).get("applicationState", {})
    parts = [failure_in(str(state.get("errorMessage", "")))]
    parts += [text for pod in drivers_of(application, pods) for text in _terminations(pod)]
    return "; ".join(dict.fromkeys(part for part in parts if part)) or NO_CAUSE


def drivers_of(application: Manifest, pods: Sequence[Manifest]) -> list[Manifest]:
    """Return the driver pods of an application, whether they live or not."""
    name = application["metadata"]["name"]
    return [pod for pod in pods if is_driver(pod) and application_name(pod) == name]


def has_running_driver(application: Manifest, pods: Sequence[Manifest]) -> bool:
    """Return whether a driver pod of an application runs."""
    drivers = drivers_of(application, pods)
    return any(pod.get("status", {}).get("phase") == "Running" for pod in drivers)


def is_living(pod: Manifest) -> bool:
    """Return whether a pod runs or will run, as far as is known."""
    # Unknown counts: the node of such a pod does not answer, and its driver may still write.
    return pod.get("status", {}).get("phase", "Pending") in ("Pending", "Running", "Unknown")


def is_driver(pod: Manifest) -> bool:
    """Return whether a pod is a driver's, whether it lives or not."""
    return bool((pod["metadata"].get("labels") or {}).get("spark-role") == "driver")


def _of_state(
    application: Manifest, drivers: Sequence[Manifest], *, may_end: bool
) -> Problem | None:
    name = application["metadata"]["name"]
    what = f"SparkApplication {name}"
    match application.get("status", {}).get("applicationState", {}).get("state", ""):
        case "SUBMISSION_FAILED":
            why = cause(application, drivers).rstrip(".")
            reason, advice = submission_refusal(why) or (
                Reason.SUBMISSION_FAILED,
                "Correct spec.application",
            )
            message = (
                f"{what} could not be submitted: {why}. {advice}; the Spark operator tries again"
            )
            return Problem(reason=reason, message=message)
        case "UNKNOWN":
            message = (
                f"{what} is in state UNKNOWN: the Spark operator has lost its driver. Check the"
                " driver's node"
            )
            return Problem(reason=Reason.APPLICATION_UNKNOWN, message=message)
        case "PENDING_RERUN" | "FAILING" as word:
            advice = "The Spark operator restarts it; see the log of the driver pod"
            message = (
                f"The driver of {what} failed ({word}): {cause(application, drivers)}. {advice}"
            )
            return Problem(reason=Reason.APPLICATION_RESTARTING, message=message)
        case "COMPLETED" | "SUCCEEDING" if not may_end:
            message = (
                f"{what} has ended although its source is unbounded, so nothing is read. Let the"
                f" program wait for the query (awaitTermination), then delete {name}: the operator"
                " creates a new one"
            )
            return Problem(reason=Reason.APPLICATION_ENDED, message=message)
        case "SUSPENDED" | "SUSPENDING":
            message = (
                f"{what} is suspended by its own spec.suspend, so nothing is read. Set that to"
                f" false, or delete {name}: the operator creates a new one"
            )
            return Problem(reason=Reason.APPLICATION_SUSPENDED, message=message)
        case word if word not in KUBEFLOW_STATES:
            message = (
                f"{what} is in state {shown(word)}, which this release does not know, so it is"
                " unknown what the driver does. Use a release of the Spark operator that the page"
                " on compatibility names, or upgrade this operator"
            )
            return Problem(reason=Reason.APPLICATION_UNKNOWN, message=message)
        case _:
            return None


def _cannot_start(pod: Manifest) -> Problem | None:
    for container in _containers(pod):
        waiting = container.get("state", {}).get("waiting") or {}
        if (advice := _CANNOT_START.get(reason := waiting.get("reason", ""))) is not None:
            detail = f"{reason}: {waiting['message']}" if waiting.get("message") else reason
            message = (
                f"Driver pod {pod['metadata']['name']} cannot start: {detail.rstrip('.')}. {advice}"
            )
            return Problem(reason=Reason.DRIVER_CANNOT_START, message=message)
    return None


def _unschedulable(pod: Manifest, *, now: float) -> Problem | None:
    for condition in pod.get("status", {}).get("conditions", ()):
        is_unschedulable = (condition.get("type"), condition.get("reason")) == (
            "PodScheduled",
            "Unschedulable",
        )
        waited = now - timestamp(condition.get("lastTransitionTime"))
        if (
            is_unschedulable
            and condition.get("status") == "False"
            and waited >= SCHEDULING_PATIENCE
        ):
            words = str(condition.get("message", "no node fits")).rstrip(".")
            advice = "Add nodes, or ask for less in spec.application.driver"
            message = f"Driver pod {pod['metadata']['name']} cannot be scheduled: {words}. {advice}"
            return Problem(reason=Reason.DRIVER_UNSCHEDULABLE, message=message)
    return None


def _slow(pod: Manifest, *, now: float) -> Problem | None:
    """Whether the containers of a pod have not started for long, for example without a volume."""
    name, status = pod["metadata"]["name"], pod.get("status", {})
    created = timestamp(pod["metadata"].get("creationTimestamp"))
    if status.get("phase") != "Pending" or not created or now - created < STARTING_PATIENCE:
        return None
    waiting = (c.get("state", {}).get("waiting") or {} for c in _containers(pod))
    gates = (c for c in status.get("conditions", ()) if c.get("status") == "False")
    words = [str(w["reason"]) for w in waiting if w.get("reason")]
    words += [str(c["reason"]) for c in gates if c.get("type") == "PodScheduled" and "reason" in c]
    why = f" ({words[0]})" if words else ""
    message = (
        f"Driver pod {name} has not started for {STARTING_PATIENCE:.0f} s{why}. See its events"
        f" (kubectl describe pod {name}): it may lack a volume, a Secret or a network"
    )
    return Problem(reason=Reason.DRIVER_CANNOT_START, message=message)


_MORE_MEMORY: Final = (
    "raise spark.driver.memoryOverhead in spec.application.sparkConf, or"
    " spec.application.driver.memory if the log has OutOfMemoryError"
)


_TOO_FEW_EXECUTORS: Final = (
    "executors ended or were refused too often: see the quotas and nodes of the namespace, and the"
    " driver's log"
)

_EXIT_CODES: Final[Mapping[int, str]] = {
    11: _TOO_FEW_EXECUTORS,
    12: _TOO_FEW_EXECUTORS,
    137: "it was killed (SIGKILL): by its node for want of memory, or because it did not end when"
    " it was asked to",
    143: "it was asked to end (SIGTERM): its pod was deleted or evicted, or its node was drained",
}
"""What the exit code of a driver means: Spark's own (`SparkExitCode`), and 128 + a signal."""


def _terminations(pod: Manifest) -> Iterator[str]:
    """Why containers of a pod ended with an error."""
    name = pod["metadata"]["name"]
    if evicted := pod.get("status", {}).get("reason"):
        yield f"pod {name}: {evicted}: {pod['status'].get('message', '')}".rstrip(": ")
    for container in _containers(pod):
        # The kubelet moves the end of a container that was restarted to lastState.
        for state in ("state", "lastState"):
            ended = container.get(state, {}).get("terminated") or {}
            if ended.get("exitCode", 0) != 0 or ended.get("reason") == "OOMKilled":
                word = ended.get("reason", "Error")
                code = int(ended.get("exitCode") or 0)
                more = _MORE_MEMORY if word == "OOMKilled" else _EXIT_CODES.get(code, "")
                yield f"pod {name}: {word} (exit code {code})" + (f": {more}" if more else "")
                yield _own_reason(ended)


def _own_reason(ended: Mapping[str, Any]) -> str:
    """Return what a container says of its end, without secrets.

    The packaged application leaves the reason in its termination log. Of other programs the kubelet
    keeps the end of the output, see `resources.pod_templates.driver_template`.
    """
    reason = reason_in(str(ended.get("message") or ""))
    return redacted_text(reason)[:_LONGEST_MESSAGE].strip().rstrip(".")


def _containers(pod: Manifest) -> Iterator[Mapping[str, Any]]:
    status = pod.get("status", {})
    yield from status.get("initContainerStatuses") or ()
    yield from status.get("containerStatuses") or ()
