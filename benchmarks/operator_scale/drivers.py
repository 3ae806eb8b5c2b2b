"""Stand-ins for the drivers of many sources, as the API server and the operator see them.

Each has a running SparkApplication and driver pod, adopts what is assigned, and writes its report
as often as a driver does: a heartbeat every 10 s while nothing is read, positions every 2 s while
something is. No record is read.
"""

import asyncio
import contextlib
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import aiohttp

from balanced_source.api.splits import Json
from balanced_source.documents import increments
from balanced_source.documents import report as report_document
from balanced_source.documents.assignment import Assignment
from balanced_source.documents.parts import Content
from balanced_source.documents.report import (
    LATE_SECONDS,
    MICRO_BATCH_SECONDS,
    MICRO_BATCHES,
    POSITIONS_AT,
    UNREAD,
    UNREAD_AT,
    HostReport,
)
from balanced_source.documents.storage import Names, pack, unpack
from balanced_source_operator.resources.documents import blob_of
from balanced_source_operator.resources.kinds import (
    BALANCED_SOURCE,
    CONFIG_MAP,
    KUBEFLOW_APPLICATION,
    NAME_LABEL,
    POD,
)
from benchmarks.operator_scale.api import MERGE, Api

PATIENCE: Final = 300.0
"""Seconds after which an assignment that is not published ends the measurement."""

HEARTBEAT: Final = 10.0
"""Seconds between two reports while nothing is read."""

POSITIONS: Final = 2.0
"""Seconds between two reports while something is read."""

_ASSIGNMENT: Final = b'-assignment"'


@dataclass(slots=True)
class Stand:
    """One driver."""

    name: str
    uid: str
    assignment: Assignment | None = None
    sequence: int = 0
    read: int = 0
    begun: float = field(default_factory=time.time)
    adopted: dict[int, float] = field(default_factory=dict)

    def report(self, *, read: int) -> str:
        """Return the document of its next report, after `read` further records of each split.

        Raises:
            LookupError: nothing is assigned.
        """
        if self.assignment is None:
            raise LookupError(f"nothing is assigned to {self.name}")
        self.sequence += 1
        self.read += read
        assignment, now = self.assignment, round(time.time(), 3)
        report = HostReport(
            incarnation=1,
            instance=f"bench-{self.name}",
            lineage=assignment.lineage,
            sequence=self.sequence,
            epoch=assignment.epoch,
            parallelism=assignment.parallelism,
            owners=assignment.owners,
            positions=dict.fromkeys(assignment.owners, self.read),
            lag=self.read % 97,
            heartbeat=now,
            location="bench",
            metrics=self._figures(now) if read else {},
        )
        return report_document.encode(report, source=self.uid)

    def _figures(self, now: float) -> Mapping[str, Json]:
        """What an autoscaler looks at: a micro-batch a second, and none is late."""
        seconds = now - self.begun
        unread = {UNREAD: self.read % 97, UNREAD_AT: now, POSITIONS_AT: now}
        return {
            **unread,
            MICRO_BATCHES: int(seconds),
            MICRO_BATCH_SECONDS: seconds,
            LATE_SECONDS: 0.0,
        }


class Drivers:
    """Of all sources of a namespace.

    Attributes:
        interval: seconds between two reports of a driver.
        has_progress: whether positions move.
        written: reports so far.
    """

    def __init__(self, api: Api, namespace: str) -> None:
        self._api = api
        self._namespace = namespace
        self._stands: dict[str, Stand] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._changed = asyncio.Condition()
        self.interval = HEARTBEAT
        self.has_progress = False
        self.written = 0

    @property
    def assigned(self) -> int:
        """Sources with an assignment."""
        return sum(stand.assignment is not None for stand in self._stands.values())

    async def follow(self) -> None:
        """Learn of all sources, and follow their assignments from now on."""
        for item in await self._api.items(BALANCED_SOURCE, self._namespace):
            name, uid = item["metadata"]["name"], item["metadata"]["uid"]
            self._stands.setdefault(name, Stand(name, uid))
        if not self._tasks:
            self._tasks.append(asyncio.create_task(self._follow()))

    async def run(self) -> None:
        """Start the drivers: their applications and pods run, and they report."""
        await self._play_spark()
        count = len(self._stands)
        for number, stand in enumerate(self._stands.values()):
            self._tasks.append(asyncio.create_task(self._report(stand, phase=number / count)))

    async def stop(self) -> None:
        """End all tasks."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()

    async def rescale(self, name: str, parallelism: int) -> float:
        """Patch the number of readers.

        Return the seconds until an assignment for that many readers is published.
        """
        stand, path = self._stands[name], BALANCED_SOURCE.path(self._namespace, name)
        stand.adopted.clear()
        begin = time.monotonic()
        await self._api.request("PATCH", path, {"spec": {"parallelism": parallelism}}, kind=MERGE)
        async with self._changed, asyncio.timeout(PATIENCE):
            await self._changed.wait_for(lambda: parallelism in stand.adopted)
        return stand.adopted[parallelism] - begin

    async def _follow(self) -> None:
        """Take over assignments for ever: a watch that breaks is opened again, as a driver does."""
        while True:
            with contextlib.suppress(aiohttp.ClientError, TimeoutError, RuntimeError):
                await self._follow_once()
            await asyncio.sleep(1)

    async def _follow_once(self) -> None:
        async for manifest in self._api.watch(CONFIG_MAP, self._namespace, only=_ASSIGNMENT):
            name = str(manifest["metadata"]["name"])
            stand = self._stands.get(name.removesuffix("-assignment"))
            blob = blob_of(manifest)
            if stand is None or not name.endswith("-assignment") or not (blob.data or blob.binary):
                continue
            stand.assignment = increments.decode(Content(unpack(blob)), source=stand.uid)
            stand.adopted.setdefault(stand.assignment.parallelism, time.monotonic())
            async with self._changed:
                self._changed.notify_all()

    async def _report(self, stand: Stand, *, phase: float) -> None:
        path = CONFIG_MAP.path(self._namespace, Names.of(stand.name).readers)
        await asyncio.sleep(phase * self.interval)
        due = time.monotonic()
        while True:
            blob = pack(stand.report(read=100 if self.has_progress else 0))
            body = {"data": dict(blob.data), "binaryData": dict(blob.binary)}
            # A driver whose report is refused, or not answered, tries again at the next one.
            with contextlib.suppress(aiohttp.ClientError, TimeoutError, RuntimeError):
                await self._api.request("PATCH", path, body, kind=MERGE)
                self.written += 1
            due += self.interval
            if (left := due - time.monotonic()) > 0:
                await asyncio.sleep(left)
            else:
                due = time.monotonic()

    async def _play_spark(self) -> None:
        """Do what the Spark operator and a node would do: applications and driver pods that run."""
        there = {pod["metadata"]["name"] for pod in await self._api.items(POD, self._namespace)}
        found = await self._api.items(KUBEFLOW_APPLICATION, self._namespace)
        applications = [a for a in found if f"{a['metadata']['name']}-driver" not in there]
        created, started = [], []
        for application in applications:
            pod = _driver_pod(self._namespace, application)
            status = KUBEFLOW_APPLICATION.path(
                self._namespace, application["metadata"]["name"], "status"
            )
            state = {"applicationState": {"state": "RUNNING"}, "executionAttempts": 1}
            running = {"status": {**state, "driverInfo": {"podName": pod["metadata"]["name"]}}}
            created.append(("POST", POD.path(self._namespace), pod, "application/json"))
            started.append(("PATCH", status, running, MERGE))
            phase = POD.path(self._namespace, pod["metadata"]["name"], "status")
            started.append(("PATCH", phase, {"status": {"phase": "Running"}}, MERGE))
        await self._api.many(created)
        await self._api.many(started)


def _driver_pod(namespace: str, application: Mapping[str, Any]) -> dict[str, Any]:
    metadata = application["metadata"]
    labels = {
        NAME_LABEL: metadata["labels"][NAME_LABEL],
        "spark-role": "driver",
        "sparkoperator.k8s.io/app-name": metadata["name"],
    }
    template = application["spec"]["driver"]["template"]
    variables = [e for c in template["spec"]["containers"] for e in c.get("env", ())]
    container = {
        "name": "spark-kubernetes-driver",
        "image": application["spec"]["image"],
        "env": variables,
    }
    owner = {
        "apiVersion": KUBEFLOW_APPLICATION.api_version,
        "kind": KUBEFLOW_APPLICATION.kind,
        "name": metadata["name"],
        "uid": metadata["uid"],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{metadata['name']}-driver",
            "namespace": namespace,
            "labels": labels,
            "ownerReferences": [owner],
        },
        "spec": {"containers": [container]},
    }
