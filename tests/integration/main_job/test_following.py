"""Sources are followed whatever the API server lacked when the operator started.

Each test has an API server of its own, whose definitions and rights it changes.
"""

import asyncio
import contextlib
import gc
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from balanced_source_operator.handlers import KopfFollower
from balanced_source_operator.settings import Settings
from support.source_scene import SourceScene as World
from support.story.operator_process import OperatorProcess
from testbed.control_plane import ADMIN, ControlPlane
from testbed.kafka import KafkaCluster
from testbed.versions import CHECKOUT
from testbed.waiting import wait_until

from .conftest import FAST

DEFINITION: Final = "balancedsources.balancedsource.io"


@pytest.mark.parametrize("namespaces", [(), ("default", "kube-system")])
async def test_a_follower_knows_where_kopf_watches_and_that_it_has_ceased(
    control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch, namespaces: tuple[str, ...]
) -> None:
    """By the names of kopf's tasks, which another version of kopf may change."""
    monkeypatch.setenv("KUBECONFIG", str(control_plane.kubeconfig()))
    wait_until(
        lambda: "balancedsource.io" in control_plane.kubectl("get", "--raw", "/apis"),
        60,
        "the group",
    )
    follower, leave = (
        KopfFollower(Settings(namespaces=namespaces), lambda *_: None),
        asyncio.Event(),
    )
    running = asyncio.create_task(follower.run(leave))
    places = [f"@{name}" for name in namespaces or (None,)]
    async with asyncio.timeout(60):
        # kopf tells no one that it has begun.
        while not (follower.follows() and (watchers := watchers_at(places))):  # noqa: ASYNC110
            await asyncio.sleep(0.05)

    assert follower.follows()
    watchers[0].cancel()
    await asyncio.gather(watchers[0], return_exceptions=True)
    assert not follower.follows()
    # How kopf ends after that is its own affair.
    leave.set()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    # kopf leaves connections to the collector.
    with warnings.catch_warnings(action="ignore", category=ResourceWarning):
        gc.collect()


def watchers_at(places: list[str]) -> list[asyncio.Task[Any]]:
    """Return kopf's watchers of BalancedSources if there is one at each place."""
    found = [
        task
        for task in asyncio.all_tasks()
        if task.get_name().startswith("watcher for balancedsources.")
    ]
    names = [task.get_name() for task in found]
    is_whole = all(any(name.endswith(place) for name in names) for place in places)
    return found if is_whole else []


class Cluster:
    """An API server of its own, a topic, and an operator that is about to start."""

    def __init__(self, kafka: KafkaCluster, folder: Path, name: str, crds: list[Path]) -> None:
        self.stack = contextlib.ExitStack()
        self.plane = self.stack.enter_context(ControlPlane(folder, crds=crds))
        self.world = World(self.plane, kafka, name)
        kafka.admin.create_topic(self.world.topic, partitions=2)
        self.stack.callback(kafka.admin.delete_topic, self.world.topic)

    def operator(self, *, user: str = ADMIN, **settings: str) -> OperatorProcess:
        """Start the operator."""
        started = OperatorProcess(self.plane, user=user, settings={**FAST, **settings})
        started.start()
        self.stack.callback(started.stop)
        return started

    def define(self) -> None:
        """Install the definition of BalancedSources, and wait until it can be used."""
        self.plane.apply(CHECKOUT / "crds")
        self.plane.wait_established(DEFINITION)

    def wait_assigned(self, seconds: float = 60) -> None:
        """Wait until the operator has served the source."""
        self.world.wait(lambda: self.world.config_map("assignment"), "an assignment", seconds)


Make = Callable[..., Cluster]


@pytest.fixture
def make(
    kafka: KafkaCluster, tmp_path_factory: pytest.TempPathFactory, spark_crds: Path
) -> Iterator[Make]:
    """Makes a cluster with further definitions beside those of the Spark operator."""
    with contextlib.ExitStack() as stack:

        def made(name: str, *crds: Path) -> Cluster:
            cluster = Cluster(kafka, tmp_path_factory.mktemp(name), name, [spark_crds, *crds])
            stack.enter_context(cluster.stack)
            return cluster

        yield made


@pytest.mark.parametrize("namespaces", ["", "late"])
def test_sources_are_served_once_their_definition_is_installed(make: Make, namespaces: str) -> None:
    """With roles in namespaces, kopf looks for the definition only as it starts."""
    cluster = make("late")
    operator = cluster.operator(NAMESPACES=namespaces)
    wait_until(lambda: f"{DEFINITION} is not installed" in operator.log, 60, "a line about it")
    cluster.define()
    cluster.world.apply()

    cluster.wait_assigned()


def test_sources_are_served_once_the_operator_has_its_rights(make: Make) -> None:
    """By default kopf ends after a minute without rights, and hangs as it does."""
    cluster = make("refused", CHECKOUT / "crds")
    cluster.plane.create_user("powerless", [])
    operator = cluster.operator(user="powerless")
    wait_until(lambda: "Request attempt #10 failed" in operator.log, 120, "a long refusal")
    grant = ("clusterrolebinding", "late", "--clusterrole=cluster-admin", "--user=powerless")
    cluster.plane.kubectl("create", *grant)
    cluster.world.apply()

    cluster.wait_assigned(90)


@pytest.mark.parametrize("namespaces", ["", "again"])
def test_sources_are_served_after_their_definition_was_deleted_and_installed_again(
    make: Make, namespaces: str
) -> None:
    cluster = make("again", CHECKOUT / "crds")
    cluster.operator(NAMESPACES=namespaces)
    cluster.world.apply()
    cluster.wait_assigned()
    cluster.plane.kubectl("delete", "crd", DEFINITION)
    cluster.define()
    cluster.world.apply()

    cluster.world.wait(lambda: cluster.world.source.status, "a status", 90)
