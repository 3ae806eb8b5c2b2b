"""The node: decides what to do about each pod and each change that it sees."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from testbed.process_node.addresses import AddressPool
from testbed.process_node.api import UNAVAILABLE, ApiError, Json, Reflector
from testbed.process_node.fields import PodFacts
from testbed.process_node.pods import NodeServices, Pod
from testbed.process_node.reporter import pod_path
from testbed.process_node.status import lost_with_the_node

_DEFAULT_GRACE = 30.0
_FINISHED = ("Succeeded", "Failed")
_log = logging.getLogger(__name__)


class Node:
    """All pods of the node, by uid.

    Args:
        services: what the pods share.
    """

    def __init__(self, services: NodeServices) -> None:
        self.pods: dict[str, Pod] = {}
        self._services = services
        self._name = services.config.name
        self._addresses = AddressPool()
        self._tasks: set[asyncio.Task[None]] = set()

    def reflectors(self) -> list[Reflector]:
        """What the node follows: all pods, and the objects that volumes show."""
        pods = Reflector(
            api=self._services.api,
            path="/api/v1/pods",
            on_list=self._pods_listed,
            on_event=self._pod_changed,
        )
        return [pods, self._objects_reflector("configmaps"), self._objects_reflector("secrets")]

    def find(self, namespace: str, name: str) -> Pod | None:
        """The pod of a name that runs here, if any."""
        for pod in self.pods.values():
            if (pod.facts.namespace, pod.facts.name) == (namespace, name):
                return pod
        return None

    def close(self) -> None:
        """End all processes at once."""
        for pod in self.pods.values():
            pod.kill()
        self._addresses.close()

    def _pods_listed(self, pods: list[Json]) -> None:
        present = {pod["metadata"]["uid"] for pod in pods}
        for uid in self.pods.keys() - present:
            self._spawn(self.pods[uid].lost())
        for pod in pods:
            self._pod_changed("ADDED", pod)

    def _pod_changed(self, kind: str, document: Json) -> None:
        metadata = document["metadata"]
        pod = self.pods.get(metadata["uid"])
        if kind == "DELETED":
            if pod:
                self._spawn(pod.lost())
            return
        node = document["spec"].get("nodeName")
        if not node:
            self._bind_if_due(document)
        elif node == self._name and metadata.get("deletionTimestamp"):
            self._delete(document, pod)
        elif node == self._name and pod is None:
            self._take(document)

    def _bind_if_due(self, document: Json) -> None:
        if not document["metadata"].get("deletionTimestamp") and not document["spec"].get(
            "schedulingGates"
        ):
            self._spawn(self._bind(document))

    async def _bind(self, document: Json) -> None:
        metadata = {"name": document["metadata"]["name"], "uid": document["metadata"]["uid"]}
        target = {"apiVersion": "v1", "kind": "Node", "name": self._name}
        path = f"{pod_path(self._facts(document, ''))}/binding"
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}
        await self._services.api.request("POST", path, body)

    def _delete(self, document: Json, pod: Pod | None) -> None:
        if pod is None:
            # nothing of it runs here: it was never started, or by an earlier run of the node
            self._spawn(self._delete_object(document))
            return
        grace = float(document["metadata"].get("deletionGracePeriodSeconds", _DEFAULT_GRACE))
        self._spawn(pod.stop(grace))

    async def _delete_object(self, document: Json) -> None:
        body = {"gracePeriodSeconds": 0, "preconditions": {"uid": document["metadata"]["uid"]}}
        await self._services.api.request("DELETE", pod_path(self._facts(document, "")), body)

    def _take(self, document: Json) -> None:
        phase = document.get("status", {}).get("phase", "Pending")
        if phase in _FINISHED:
            return
        if phase == "Running":
            # an earlier run of the node started it, and its processes died with that
            self._spawn(self._report_lost(document))
            return
        facts = self._facts(document, self._addresses.take())
        self.pods[facts.uid] = Pod(
            self._services,
            facts,
            on_ended=lambda: self._addresses.give_back(facts.ip),
            on_gone=lambda: self._forget(facts),
        )

    async def _report_lost(self, document: Json) -> None:
        status = lost_with_the_node(document.get("status", {}))
        body = {"metadata": {"uid": document["metadata"]["uid"]}, "status": status}
        await self._services.api.patch(f"{pod_path(self._facts(document, ''))}/status", body)

    def _forget(self, facts: PodFacts) -> None:
        self.pods.pop(facts.uid, None)

    def _objects_reflector(self, resource: str) -> Reflector:
        def changed(kind: str, document: Json) -> None:
            # like a kubelet: the files of a deleted object stay
            if kind != "DELETED":
                self._object_changed(resource, document["metadata"])

        def listed(documents: list[Json]) -> None:
            for document in documents:
                self._object_changed(resource, document["metadata"])

        return Reflector(
            api=self._services.api, path=f"/api/v1/{resource}", on_list=listed, on_event=changed
        )

    def _object_changed(self, resource: str, metadata: Json) -> None:
        for pod in self.pods.values():
            if pod.facts.namespace == metadata["namespace"]:
                self._spawn(pod.object_changed(resource, metadata["name"]))

    def _facts(self, document: Json, ip: str) -> PodFacts:
        return PodFacts(document=document, node=self._name, ip=ip)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(_logged(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _logged(work: Coroutine[Any, Any, None]) -> None:
    """Do it; a refusal is only logged.

    The next list or event brings it again if it still matters.
    """
    try:
        await work
    except (ApiError, *UNAVAILABLE) as error:
        _log.info("%s: %r", work, error)
