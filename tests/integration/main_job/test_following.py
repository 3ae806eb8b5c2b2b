"""Sources are followed whatever the API server lacked when the operator started.

Each test has an API server of its own, whose definitions and rights it changes.
"""

import contextlib
from typing import Any

import pytest

from support.story.operator_process import OperatorProcess
from testbed.control_plane import ControlPlane
from testbed.kafka import KafkaCluster
from testbed.versions import CHECKOUT
from testbed.waiting import wait_until

from .conftest import FAST, World


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
