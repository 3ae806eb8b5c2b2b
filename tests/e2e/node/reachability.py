"""What the chart's NetworkPolicy lets the operator's pod reach, and who may reach it.

Only a node in a network namespace of its own enforces policies here.
"""

import contextlib
import socket
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any, Final

from e2e.node.scene import JOBS, SYSTEM, Scene
from testbed.errors import CommandError
from testbed.node.cluster import NodeCluster
from testbed.node.network import NODE_ADDRESS
from testbed.node.policy_agent import PolicyAgent

METRICS: Final = 8080
PROBES: Final = 8081
_ATTEMPT: Final = """
import socket, sys
try:
    socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=3).close()
except TimeoutError:
    print("dropped")
else:
    print("open")
"""


def enforced(scene: Scene) -> AbstractContextManager[None]:
    """Enforce the cluster's NetworkPolicies, where the testbed can."""
    if isinstance(scene.cluster, NodeCluster):
        return PolicyAgent(scene.cluster.control_plane).running()
    return contextlib.nullcontext()


def check_reachability(scene: Scene) -> list[str]:
    """Try connections between running pods; returns those that are not as the policy says."""
    if not isinstance(scene.cluster, NodeCluster):
        return []
    host, port = scene.cluster.kafka().bootstrap.rsplit(":", 1)
    operator, driver, executor = scene.operator, scene.driver, scene.pods("executor")[0]
    with _listener() as elsewhere:
        expected = [
            ("the operator to Kafka", operator, SYSTEM, host, int(port), "open"),
            ("the operator to another port", operator, SYSTEM, NODE_ADDRESS, elsewhere, "dropped"),
            ("a driver to that port", driver, JOBS, NODE_ADDRESS, elsewhere, "open"),
            ("an allowed pod to metrics", executor, JOBS, _address(operator), METRICS, "open"),
            ("another pod to metrics", driver, JOBS, _address(operator), METRICS, "dropped"),
            ("a pod to the probes", driver, JOBS, _address(operator), PROBES, "open"),
        ]
        outcomes = [
            (what, outcome, _attempt(scene, pod, namespace, address, number))
            for what, pod, namespace, address, number, outcome in expected
        ]
    return [
        f"NetworkPolicy: {what} was {found}, expected {wanted}"
        for what, wanted, found in outcomes
        if found != wanted
    ]


@contextlib.contextmanager
def _listener() -> Iterator[int]:
    """A port of the node that accepts connections, and that no policy names."""
    with socket.create_server((NODE_ADDRESS, 0)) as server:
        yield server.getsockname()[1]


def _attempt(scene: Scene, pod: dict[str, Any], namespace: str, address: str, port: int) -> str:
    """Connect from a pod: "open", "dropped", or what went wrong otherwise."""
    command = ("python3", "-c", _ATTEMPT, address, str(port))
    try:
        return scene.kubectl(
            "exec", pod["metadata"]["name"], "-n", namespace, "--", *command
        ).strip()
    except CommandError as error:
        return str(error)


def _address(pod: dict[str, Any]) -> str:
    address: str = pod["status"]["podIP"]
    return address
