"""How a driver follows its assignment at a real API server, with the rights it is granted."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from lightkube import Client

from balanced_source.documents import assignment as assignment_document
from balanced_source.documents.assignment import Assignment
from balanced_source_operator.resources.access import role, role_binding
from balanced_source_operator.resources.documents import config_map
from balanced_source_operator.resources.identity import Identity
from balanced_source_spark.channels.kubernetes import KubernetesChannel
from support.audit import AuditLog
from support.stand_in_driver import driver_config
from testbed.control_plane import ControlPlane
from testbed.waiting import wait_until

pytestmark = pytest.mark.integration

NAMESPACE = "shop"
DRIVER = f"system:serviceaccount:{NAMESPACE}:spark"
SOURCE = Identity(namespace=NAMESPACE, name="orders", uid="6f5902ac-237b-4a1c-9b0d-0f7a6ad0e1f4")
SMALL_WATCH_CACHE = "--watch-cache-sizes=configmaps#10"


class Scene:
    """An API server that logs requests, and a driver that follows its assignment."""

    def __init__(self, control_plane: ControlPlane, audit: AuditLog) -> None:
        self.control_plane = control_plane
        self.audit = audit
        self.seen: list[Assignment] = []

    def publish(self, epoch: int) -> None:
        document = assignment_document.encode(
            Assignment(epoch=epoch, parallelism=1), source=SOURCE.uid
        )
        self.apply(config_map(SOURCE, SOURCE.documents.assignment, document))

    def apply(self, manifest: dict[str, Any]) -> None:
        metadata = {k: v for k, v in manifest["metadata"].items() if k != "ownerReferences"}
        self.control_plane.kubectl(
            "apply", "-f", "-", stdin=json.dumps({**manifest, "metadata": metadata})
        )

    def others_change(self, times: int) -> None:
        """ConfigMaps that are no one's business here change."""
        for number in range(times):
            self.apply(
                {
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "metadata": {"name": "other", "namespace": NAMESPACE},
                    "data": {"number": str(number)},
                }
            )

    def restart_apiserver(self) -> None:
        self.control_plane.kill_apiserver()
        self.control_plane.start_apiserver(SMALL_WATCH_CACHE, *self.audit.flags)

    def follow(self) -> KubernetesChannel:
        config = driver_config(self.control_plane, NAMESPACE)
        client = Client(config=config, timeout=httpx2.Timeout(5), trust_env=False)
        channel = KubernetesChannel(client, namespace=NAMESPACE, source=SOURCE.name, uid=SOURCE.uid)
        channel.start(self.seen.append)
        return channel

    def wait_seen(self, epoch: int) -> None:
        wait_until(
            lambda: self.seen and self.seen[-1].epoch == epoch, 30, f"epoch {epoch}", interval=0.01
        )

    @property
    def requests(self) -> list[str]:
        """Verbs of the driver's requests for its assignment."""
        return self.audit.verbs(DRIVER, SOURCE.documents.assignment)


@pytest.fixture(scope="module")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    with ControlPlane(tmp_path_factory.mktemp("watch")) as started:
        started.kubectl("create", "namespace", NAMESPACE)
        started.kubectl("create", "serviceaccount", "spark", "-n", NAMESPACE)
        yield started


@pytest.fixture
def scene(control_plane: ControlPlane, tmp_path: Path) -> Scene:
    made = Scene(control_plane, AuditLog(tmp_path))
    made.apply(role(SOURCE))
    made.apply(role_binding(SOURCE, ["spark"]))
    made.publish(1)
    return made


def test_an_assignment_older_than_the_watch_cache_is_followed_by_one_watch(scene: Scene) -> None:
    scene.others_change(10)
    scene.restart_apiserver()
    scene.others_change(1)

    channel = scene.follow()
    scene.wait_seen(1)
    scene.others_change(20)
    scene.publish(2)
    scene.wait_seen(2)

    channel.close()
    assert scene.requests == ["list", "watch"]
