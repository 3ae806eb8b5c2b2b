"""Sources are followed whatever the API server lacked when the operator started.

Each test has an API server of its own, whose definitions and rights it changes.
"""

import asyncio
import contextlib
import gc
import warnings
from typing import Any

import pytest

from balanced_source_operator.handlers import KopfFollower
from balanced_source_operator.settings import Settings
from support.source_scene import SourceScene as World
from support.story.operator_process import OperatorProcess
from testbed.control_plane import ControlPlane
from testbed.kafka import KafkaCluster
from testbed.versions import CHECKOUT
from testbed.waiting import wait_until

from .conftest import FAST


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


@pytest.mark.parametrize("namespaces", ["", "late"])
def test_sources_are_served_once_their_definition_is_installed(
    kafka: KafkaCluster, tmp_path_factory: pytest.TempPathFactory, spark_crds: Any, namespaces: str
) -> None:
    """With roles in namespaces, kopf looks for the definition only as it starts."""
    with contextlib.ExitStack() as stack:
        folder = tmp_path_factory.mktemp("late")
        late = stack.enter_context(ControlPlane(folder, crds=[spark_crds]))
        world = World(late, kafka, "late")
        kafka.admin.create_topic(world.topic, partitions=2)
        stack.callback(kafka.admin.delete_topic, world.topic)
        operator = OperatorProcess(late, settings={**FAST, "NAMESPACES": namespaces})
        operator.start()
        stack.callback(operator.stop)
        wait_until(
            lambda: "balancedsource.io is not installed" in operator.log,
            60,
            "a line about the definition",
        )
        late.apply(CHECKOUT / "crds")
        late.wait_established("balancedsources.balancedsource.io")
        world.apply()

        world.wait(lambda: world.config_map("assignment"), "an assignment", 60)


def test_sources_are_served_once_the_operator_has_its_rights(
    kafka: KafkaCluster, tmp_path_factory: pytest.TempPathFactory, spark_crds: Any
) -> None:
    """By default kopf ends after a minute without rights, and hangs as it does."""
    crds = [spark_crds, CHECKOUT / "crds"]
    with contextlib.ExitStack() as stack:
        plane = stack.enter_context(ControlPlane(tmp_path_factory.mktemp("refused"), crds=crds))
        world = World(plane, kafka, "refused")
        kafka.admin.create_topic(world.topic, partitions=2)
        plane.create_user("powerless", [])
        operator = OperatorProcess(plane, user="powerless", settings=FAST)
        operator.start()
        stack.callback(operator.stop)
        wait_until(lambda: "Request attempt #10 failed" in operator.log, 120, "a long refusal")
        grant = ("clusterrolebinding", "late", "--clusterrole=cluster-admin", "--user=powerless")
        plane.kubectl("create", *grant)
        world.apply()

        world.wait(lambda: world.config_map("assignment"), "an assignment", 90)


@pytest.mark.parametrize("namespaces", ["", "again"])
def test_sources_are_served_after_their_definition_was_deleted_and_installed_again(
    kafka: KafkaCluster, tmp_path_factory: pytest.TempPathFactory, spark_crds: Any, namespaces: str
) -> None:
    crds = [spark_crds, CHECKOUT / "crds"]
    with contextlib.ExitStack() as stack:
        plane = stack.enter_context(ControlPlane(tmp_path_factory.mktemp("again"), crds=crds))
        world = World(plane, kafka, "again")
        kafka.admin.create_topic(world.topic, partitions=2)
        stack.callback(kafka.admin.delete_topic, world.topic)
        operator = OperatorProcess(plane, settings={**FAST, "NAMESPACES": namespaces})
        operator.start()
        stack.callback(operator.stop)
        world.apply()
        world.wait(lambda: world.config_map("assignment"), "an assignment", 60)
        plane.kubectl("delete", "crd", "balancedsources.balancedsource.io")
        plane.apply(CHECKOUT / "crds")
        plane.wait_established("balancedsources.balancedsource.io")
        world.apply()

        world.wait(lambda: world.source.status, "a status", 90)
