"""Replicas of the operator at a real Lease."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from kubernetes_asyncio import config
from kubernetes_asyncio.client import ApiClient, Configuration

from balanced_source_operator.leadership import serve_while_leading
from balanced_source_operator.resources.kinds import LEASE_NAME
from testbed.control_plane import ControlPlane

pytestmark = [pytest.mark.integration, pytest.mark.asyncio]


@pytest.fixture(scope="module")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    with ControlPlane(tmp_path_factory.mktemp("leadership")) as started:
        yield started


@pytest.fixture
def namespace(control_plane: ControlPlane, tmp_path: Path) -> str:
    name = tmp_path.name.replace("_", "-").lower()[:60].strip("-")
    control_plane.kubectl("create", "namespace", name)
    return name


@asynccontextmanager
async def client_of(control_plane: ControlPlane) -> AsyncIterator[ApiClient]:
    configuration = Configuration()
    await config.load_kube_config(
        str(control_plane.kubeconfig()), client_configuration=configuration
    )
    async with ApiClient(configuration) as client:
        yield client


async def within(seconds: float, awaitable: Awaitable[Any]) -> None:
    async with asyncio.timeout(seconds):
        await awaitable


class Replica:
    """Says when it serves, and serves until it is told to stop or to fail."""

    def __init__(self, client: ApiClient, namespace: str, identity: str) -> None:
        self.serving = asyncio.Event()
        self.failure: Exception | None = None
        self.stop = asyncio.Event()
        self.lost = threading.Event()
        self.task = asyncio.create_task(
            serve_while_leading(
                self._serve,
                client,
                namespace=namespace,
                identity=identity,
                stop=self.stop,
                end=self.lost.set,  # it would end this process
            )
        )

    async def _serve(self) -> None:
        self.serving.set()
        await self.stop.wait()
        if self.failure:
            raise self.failure


async def test_one_serves_and_its_successor_begins_at_once(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with client_of(control_plane) as client:
        first = Replica(client, namespace, "first")
        await within(20, first.serving.wait())
        second = Replica(client, namespace, "second")
        with pytest.raises(TimeoutError):
            await within(5, second.serving.wait())
        begun = time.monotonic()
        first.stop.set()
        await within(10, first.task)
        await within(20, second.serving.wait())
        assert time.monotonic() - begun < 10, "it waited until the Lease had run out"
        lease = control_plane.get("lease", LEASE_NAME, namespace)
        assert lease is not None
        assert lease["spec"]["holderIdentity"] == "second"
        second.stop.set()
        await within(10, second.task)


async def test_a_lease_without_a_holder_is_taken(
    control_plane: ControlPlane, namespace: str
) -> None:
    """The chart makes it."""
    metadata = {"name": LEASE_NAME, "namespace": namespace}
    control_plane.apply(
        {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata}
    )
    async with client_of(control_plane) as client:
        leader = Replica(client, namespace, "leader")
        await within(20, leader.serving.wait())
        leader.stop.set()
        await within(10, leader.task)


async def test_a_standby_ends_beside_a_lease_without_a_holder(
    control_plane: ControlPlane, namespace: str
) -> None:
    metadata = {"name": LEASE_NAME, "namespace": namespace}
    control_plane.apply(
        {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata}
    )
    async with client_of(control_plane) as client:
        replica = Replica(client, namespace, "stopped")
        replica.stop.set()
        await within(20, replica.task)


async def test_a_leader_that_cannot_serve_ends(control_plane: ControlPlane, namespace: str) -> None:
    async with client_of(control_plane) as client:
        leader = Replica(client, namespace, "leader")
        await within(20, leader.serving.wait())
        leader.failure = RuntimeError("out of order")
        leader.stop.set()
        with pytest.raises(RuntimeError, match="out of order"):
            await within(10, leader.task)


async def test_a_short_outage_of_the_api_server_ends_no_query(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with client_of(control_plane) as client:
        leader = Replica(client, namespace, "leader")
        await within(20, leader.serving.wait())
        await asyncio.to_thread(control_plane.kill_apiserver)
        await asyncio.sleep(3)  # more than one renewal is due
        control_plane.start_apiserver()
        assert not leader.task.done()
        assert not leader.lost.is_set()
        leader.stop.set()
        await within(20, leader.task)
