"""The status of a pod as the node reports it. Pure, except for the clock it is given."""

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from testbed.process_node.fields import HOST_IP

_SIGNALLED = 128
State = dict[str, Any]


def timestamp() -> str:
    """Now, as the API writes it."""
    return dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def exit_code(returncode: int) -> int:
    """The code that a container reports: a death by signal n is 128 + n."""
    return returncode if returncode >= 0 else _SIGNALLED - returncode


def waiting(reason: str, message: str = "") -> State:
    """The state of a container that does not run yet, or not at the moment."""
    return {"waiting": {"reason": reason} | ({"message": message} if message else {})}


def running(started: str) -> State:
    """The state of a container that runs."""
    return {"running": {"startedAt": started}}


def terminated(code: int, started: str, container_id: str, message: str = "") -> State:
    """The state of a container that has ended, with the message that it has left."""
    reason = "Completed" if code == 0 else "Error"
    details = {"exitCode": code, "reason": reason, "startedAt": started, "finishedAt": timestamp()}
    left = {"message": message} if message else {}
    return {"terminated": details | left | {"containerID": container_id}}


@dataclass(slots=True, kw_only=True)
class ContainerStatus:
    """One container's part of the status.

    Attributes:
        name: of the container.
        image: as in the spec.
        state: now; made by `waiting`, `running` or `terminated`.
        last: how it ended before the present run; empty if this is the first.
        restarts: how often it was started again.
        container_id: `process://PID` of the present or last run.
    """

    name: str
    image: str
    state: State = field(default_factory=lambda: waiting("ContainerCreating"))
    last: State = field(default_factory=dict)
    restarts: int = 0
    container_id: str = ""

    @property
    def runs(self) -> bool:
        """Whether it runs, which is all that "ready" means here."""
        return "running" in self.state

    def document(self) -> dict[str, Any]:
        """As the API has it."""
        return {
            "name": self.name,
            "image": self.image,
            "imageID": f"process-node/{self.image}",
            "containerID": self.container_id,
            "state": self.state,
            "lastState": self.last,
            "ready": self.runs,
            "started": self.runs,
            "restartCount": self.restarts,
        }


@dataclass(slots=True, kw_only=True)
class PodStatus:
    """The status of one pod.

    Attributes:
        ip: the pod's address.
        containers: by name.
        init_containers: by name.
        phase: of the pod.
        reason: why the pod failed as a whole; empty if it did not.
        message: the same for people.
        started: when the node took the pod.
    """

    ip: str
    containers: dict[str, ContainerStatus]
    init_containers: dict[str, ContainerStatus]
    phase: str = "Pending"
    reason: str = ""
    message: str = ""
    started: str = field(default_factory=timestamp)
    _conditions: dict[str, dict[str, str]] = field(default_factory=dict)

    def fail(self, reason: str, message: str) -> None:
        """The pod as a whole failed, before or beside its containers."""
        self.phase, self.reason, self.message = "Failed", reason, message

    def document(self) -> dict[str, Any]:
        """As the API has it."""
        status: dict[str, Any] = {
            "phase": self.phase,
            "hostIP": HOST_IP,
            "podIP": self.ip,
            "podIPs": [{"ip": self.ip}],
            "startTime": self.started,
            "conditions": self._updated_conditions(),
            "containerStatuses": [container.document() for container in self.containers.values()],
        }
        if self.init_containers:
            inits = self.init_containers.values()
            status["initContainerStatuses"] = [container.document() for container in inits]
        if self.reason:
            status |= {"reason": self.reason, "message": self.message}
        return status

    def _updated_conditions(self) -> list[dict[str, str]]:
        ready = self.phase == "Running" and all(
            container.runs for container in self.containers.values()
        )
        now = {
            "PodScheduled": True,
            "Initialized": self.phase != "Pending",
            "ContainersReady": ready,
            "Ready": ready,
        }
        for name, holds in now.items():
            self._set_condition(name, str(holds))
        return list(self._conditions.values())

    def _set_condition(self, name: str, value: str) -> None:
        if self._conditions.get(name, {}).get("status") != value:
            self._conditions[name] = {
                "type": name,
                "status": value,
                "lastTransitionTime": timestamp(),
            }


def lost_with_the_node(status: Mapping[str, Any]) -> dict[str, Any]:
    """The status of a pod whose processes died with an earlier run of the node."""
    ended = {"exitCode": _SIGNALLED + 9, "reason": "NodeRestart", "finishedAt": timestamp()}
    containers = [
        {**container, "ready": False, "started": False, "state": {"terminated": ended}}
        for container in status.get("containerStatuses", [])
    ]
    message = "the node was started anew; its processes had died with it"
    return {
        "phase": "Failed",
        "reason": "NodeRestart",
        "message": message,
        "containerStatuses": containers,
    }
