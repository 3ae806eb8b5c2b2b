"""The Node object: registration, status and lease."""

import asyncio
import datetime as dt
import logging
import platform
from http import HTTPStatus
from typing import Any

from testbed.process_node.api import UNAVAILABLE, Api, ApiError
from testbed.process_node.config import NodeConfig
from testbed.process_node.fields import HOST_IP
from testbed.process_node.status import timestamp

_CAPACITY = {"cpu": "64", "memory": "64Gi", "pods": "250", "ephemeral-storage": "100Gi"}
_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
_HEARTBEAT_SECONDS = 5.0
_INFO = (
    "machineID",
    "systemUUID",
    "bootID",
    "kernelVersion",
    "osImage",
    "containerRuntimeVersion",
    "kubeletVersion",
    "kubeProxyVersion",
    "operatingSystem",
    "architecture",
)
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_log = logging.getLogger(__name__)


async def keep_registered(api: Api, config: NodeConfig) -> None:
    """Register the node and renew status and lease until cancelled."""
    ready_since = timestamp()
    while True:
        try:
            await _create(api, "/api/v1/nodes", _node(config))
            await api.patch(
                f"/api/v1/nodes/{config.name}/status", {"status": _status(config, ready_since)}
            )
            await _renew_lease(api, config.name)
        except (ApiError, *UNAVAILABLE) as error:
            _log.info("heartbeat: %r", error)
            await asyncio.sleep(0.5)
        else:
            await asyncio.sleep(_HEARTBEAT_SECONDS)


async def _create(api: Api, path: str, body: dict[str, Any]) -> None:
    try:
        await api.request("POST", path, body)
    except ApiError as error:
        if error.status != HTTPStatus.CONFLICT:
            raise


async def _renew_lease(api: Api, name: str) -> None:
    now = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    spec = {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": now}
    try:
        await api.patch(f"{_LEASES}/{name}", {"spec": spec})
    except ApiError as error:
        if error.status != HTTPStatus.NOT_FOUND:
            raise
        metadata = {"name": name, "namespace": "kube-node-lease"}
        lease = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": metadata,
            "spec": spec,
        }
        await _create(api, _LEASES, lease)


def _node(config: NodeConfig) -> dict[str, Any]:
    labels = {
        "kubernetes.io/hostname": config.name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": _ARCHITECTURES.get(platform.machine(), platform.machine()),
    }
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": config.name, "labels": labels}}


def _status(config: NodeConfig, ready_since: str) -> dict[str, Any]:
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "KubeletReady",
        "message": "the process node runs containers as local processes",
        "lastHeartbeatTime": timestamp(),
        "lastTransitionTime": ready_since,
    }
    return {
        "capacity": _CAPACITY,
        "allocatable": _CAPACITY,
        "addresses": [
            {"type": "InternalIP", "address": HOST_IP},
            {"type": "Hostname", "address": config.name},
        ],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": config.port}},
        "nodeInfo": dict.fromkeys(_INFO, "process-node"),
        "conditions": [ready],
    }
