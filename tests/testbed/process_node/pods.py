"""The life of one pod on the node."""

import asyncio
import contextlib
import logging
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

from testbed.process_node.api import UNAVAILABLE, Api, ApiError
from testbed.process_node.config import NodeConfig
from testbed.process_node.containers import Container
from testbed.process_node.fields import PodFacts
from testbed.process_node.images import UnknownImageError, find_image
from testbed.process_node.launcher import Launcher
from testbed.process_node.objects import MissingObjectError, Objects, UnsupportedError
from testbed.process_node.reporter import StatusReporter, pod_path
from testbed.process_node.status import ContainerStatus, PodStatus, waiting
from testbed.process_node.volumes import Volumes, shown_objects

_RETRY_SECONDS = 0.3
_FLUSH_SECONDS = 10.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeServices:
    """What all pods of a node share.

    Attributes:
        api: the connection.
        config: of the node.
        namespaces: whether containers get a root of their own.
    """

    api: Api
    config: NodeConfig
    namespaces: bool


class Pod:
    """Runs one pod from the moment it is bound until its object is gone.

    Args:
        services: of the node.
        facts: the pod and its address.
        on_ended: called once, when no process of the pod will run any more; its address is free
            then.
        on_gone: called when its object is gone too.
    """

    def __init__(
        self,
        services: NodeServices,
        facts: PodFacts,
        *,
        on_ended: Callable[[], None],
        on_gone: Callable[[], None],
    ) -> None:
        self.facts = facts
        self._services = services
        self._on_gone = on_gone
        self._stopping = False
        self._refreshing = asyncio.Lock()
        directory = services.config.directory
        name = f"{facts.namespace}_{facts.name}_{facts.uid[:8]}"
        self._folder = directory / "pods" / name
        self.logs = directory / "logs" / name
        self._folder.mkdir(parents=True, exist_ok=True)
        self.status = PodStatus(
            ip=facts.ip,
            containers=_statuses(facts.spec["containers"]),
            init_containers=_statuses(facts.spec.get("initContainers", [])),
        )
        self._reporter = StatusReporter(services.api, facts, self.status)
        objects = Objects(services.api, facts.namespace)
        self._volumes = Volumes(
            pod=facts, objects=objects, folder=self._folder / "volumes", claims=directory / "claims"
        )
        self._launcher = Launcher(
            config=services.config,
            pod=facts,
            objects=objects,
            volumes=self._volumes,
            folder=self._folder,
            namespaces=services.namespaces,
        )
        self._init_containers = self._containers(facts.spec.get("initContainers", []), is_init=True)
        self._main_containers = self._containers(facts.spec["containers"], is_init=False)
        self._task = asyncio.create_task(self._run())
        self._task.add_done_callback(lambda _: on_ended())
        self._renewal = asyncio.create_task(self._renew_tokens())

    def runs(self, container: str) -> bool:
        """Whether a container's process lives."""
        return any(one.spec["name"] == container and one.runs for one in self._all)

    def log_file(self, container: str, *, previous: bool = False) -> Path | None:
        """The log of a container's present run or of the one before.

        None if there is no such run.
        """
        known = self.status.containers | self.status.init_containers
        if container not in known:
            return None
        run = known[container].restarts - previous
        path = self.logs / f"{container}.{run}.log"
        if not path.exists() and "waiting" in known[container].state:
            # in back-off the last run is the present one
            path = self.logs / f"{container}.{run - 1}.log"
        return path if path.exists() else None

    async def object_changed(self, resource: str, name: str) -> None:
        """Refresh the volumes that show a ConfigMap or Secret."""
        shown = {
            entry
            for volume in self.facts.spec.get("volumes", [])
            for entry in shown_objects(volume)
        }
        if (resource, name) in shown and not self._stopping:
            await self._refresh(resource, name)

    async def stop(self, grace: float) -> None:
        """End all containers and remove the pod's object.

        Args:
            grace: seconds between SIGTERM and SIGKILL; 0 kills at once.
        """
        if self._stopping:
            return
        self._stopping = True
        _log.info("%s: stop with %g s of grace", self.facts.name, grace)
        await self._end_processes(grace)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_FLUSH_SECONDS):
                await self._reporter.flush()
        await self._delete_object()
        self._close()

    async def lost(self) -> None:
        """End everything at once: the pod's object is gone already."""
        self._stopping = True
        await self._end_processes(0)
        self._close()

    def kill(self) -> None:
        """End all processes at once; for the end of the node itself."""
        self._task.cancel()
        for container in self._all:
            container.kill()

    @property
    def _all(self) -> list[Container]:
        return [*self._init_containers, *self._main_containers]

    def _containers(self, specs: list[Mapping[str, Any]], *, is_init: bool) -> list[Container]:
        statuses = self.status.init_containers if is_init else self.status.containers
        return [
            Container(
                spec=spec,
                policy=self.facts.spec.get("restartPolicy", "Always"),
                is_init=is_init,
                launcher=self._launcher,
                status=statuses[spec["name"]],
                reporter=self._reporter,
                logs=self.logs,
            )
            for spec in specs
        ]

    async def _run(self) -> None:
        self._reporter.changed()
        try:
            await self._prepare()
            await self._run_containers()
        except Exception as error:  # noqa: BLE001 - told in the pod's status, the node continues
            _log.exception("%s failed", self.facts.name)
            self._fail("ProcessNodeError", repr(error))

    async def _prepare(self) -> None:
        """Wait until everything that the pod refers to is there.

        A kubelet tries again without end, too: such a pod stays Pending.
        """
        while not self._stopping:
            try:
                await self._look_for_parts()
            except UnknownImageError as error:
                self._set_waiting("ErrImagePull", str(error))
            except (UnsupportedError, ValueError) as error:
                self._set_waiting("CreateContainerConfigError", str(error))
            except (MissingObjectError, *UNAVAILABLE) as error:
                self._set_waiting("ContainerCreating", str(error))
            else:
                return
            await asyncio.sleep(_RETRY_SECONDS)

    async def _look_for_parts(self) -> None:
        for container in self._all:
            find_image(self._services.config.images, container.spec["image"])
        if not self._services.namespaces:
            self._volumes.transform = self._launcher.path_map().rewrite_file
        # a change of an object that comes meanwhile is checked after that
        async with self._refreshing:
            await self._volumes.prepare()
        for container in self._all:
            await self._launcher.environment(container.spec)

    async def _run_containers(self) -> None:
        for container in self._init_containers:
            if self._stopping:
                return
            if await container.run() and not self._stopping:
                self._fail("InitContainerFailed", f"init container {container.spec['name']} failed")
                return
        if self._stopping:
            return
        self.status.phase = "Running"
        codes = await asyncio.gather(*(container.run() for container in self._main_containers))
        self.status.phase = "Failed" if any(codes) else "Succeeded"
        self._reporter.changed()

    async def _refresh(self, resource: str = "", name: str = "") -> None:
        async with self._refreshing:
            try:
                changed = await self._volumes.refresh(resource, name)
                _log.info("%s: volumes changed: %s", self.facts.name, changed)
            except (MissingObjectError, ApiError, *UNAVAILABLE) as error:
                # the files stay as they are; the next event or renewal brings what is missed
                _log.info("%s: volumes not refreshed: %s", self.facts.name, error)

    async def _renew_tokens(self) -> None:
        while True:
            await asyncio.sleep(5)
            if self._volumes.renew_at is not None and time.monotonic() > self._volumes.renew_at:
                await self._refresh()

    async def _end_processes(self, grace: float) -> None:
        for container in self._all:
            container.terminate() if grace else container.kill()
        waits = [asyncio.create_task(container.wait()) for container in self._all]
        await asyncio.wait(waits, timeout=grace or None)
        for container in self._all:
            container.kill()
        await asyncio.wait([*waits, self._task], timeout=_FLUSH_SECONDS)

    async def _delete_object(self) -> None:
        body = {"gracePeriodSeconds": 0, "preconditions": {"uid": self.facts.uid}}
        while True:
            try:
                await self._services.api.request("DELETE", pod_path(self.facts), body)
            except ApiError as error:
                if error.status in (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT):
                    return
            except UNAVAILABLE:
                pass
            else:
                return
            await asyncio.sleep(_RETRY_SECONDS)

    def _close(self) -> None:
        for task in (self._task, self._renewal):
            task.cancel()
        self._reporter.close()
        shutil.rmtree(self._folder, ignore_errors=True)
        self._on_gone()

    def _fail(self, reason: str, message: str) -> None:
        self.status.fail(reason, message)
        self._set_waiting(reason, message)

    def _set_waiting(self, reason: str, message: str) -> None:
        for status in [*self.status.init_containers.values(), *self.status.containers.values()]:
            if "waiting" in status.state:
                status.state = waiting(reason, message)
        self._reporter.changed()


def _statuses(containers: list[Mapping[str, Any]]) -> dict[str, ContainerStatus]:
    return {
        spec["name"]: ContainerStatus(name=spec["name"], image=spec["image"]) for spec in containers
    }
