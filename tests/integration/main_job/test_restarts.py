"""Changed settings wait for what the policy says, at a real API server."""

import json
from typing import Any

import pytest

from balanced_source_operator.resources.kinds import KUBEFLOW_APPLICATION
from testbed.errors import CommandError

from .conftest import World

APPLICATIONS = f"{KUBEFLOW_APPLICATION.plural}.{KUBEFLOW_APPLICATION.group}"


def application(world: World) -> dict[str, Any]:
    return world.control_plane.get(APPLICATIONS, "orders-1", world.namespace) or {}


def run(world: World) -> str:
    """Say that the application runs, as the Spark operator would; return its uid."""
    world.wait(lambda: application(world), "the application")
    running = json.dumps({"status": {"applicationState": {"state": "RUNNING"}, "driverInfo": {}}})
    # From the answer: an application that runs may be replaced a second later.
    return world.kubectl(
        "patch",
        APPLICATIONS,
        "orders-1",
        "--subresource",
        "status",
        "--type",
        "merge",
        "-p",
        running,
        "-o",
        "jsonpath={.metadata.uid}",
    )


def with_restart(world: World, **restart: Any) -> dict[str, Any]:
    return {**world.manifest()["spec"]["application"], "restart": restart}


def test_new_settings_wait_for_the_nonce(world: World) -> None:
    world.kafka.admin.create_topic(world.topic, partitions=3)
    world.apply(application=with_restart(world, policy="OnNonce"))
    first = run(world)
    world.driver().adopt(parallelism=2)
    world.wait_condition("Ready", "True", "Reading")

    world.source.patch({"application": {"image": "balanced-source/spark:next"}})
    condition = world.wait_condition("RestartPending", "True", "WaitingForNonce")
    assert (
        "(image: 'balanced-source/spark:4.2.0' → 'balanced-source/spark:next')"
        in condition["message"]
    )
    assert application(world)["metadata"]["uid"] == first

    world.source.patch({"application": {"restart": {"nonce": 1}}})
    world.wait(
        lambda: application(world).get("metadata", {}).get("uid", first) != first,
        "another application",
    )
    assert application(world)["spec"]["image"] == "balanced-source/spark:next"
    run(world)
    world.wait(lambda: not world.source.condition("RestartPending"), "the condition to go")


def test_settings_that_do_not_work_are_given_up(world: World) -> None:
    world.kafka.admin.create_topic(world.topic, partitions=3)
    world.apply(application=with_restart(world, rollbackAfter="1s"))
    first = run(world)
    before = world.driver()
    before.adopt(parallelism=2)
    world.wait(
        lambda: "healthy" in world.source.status.get("settings", ""),
        "the settings to be remembered",
    )

    world.source.patch({"application": {"image": "balanced-source/spark:broken"}})
    world.wait(
        lambda: application(world).get("metadata", {}).get("uid", first) != first,
        "the new settings",
    )
    before.close()
    run(world)

    condition = world.wait_condition("Degraded", "True", "RolledBack")
    assert "its driver has not registered" in condition["message"]
    world.wait(
        lambda: application(world).get("spec", {}).get("image") == "balanced-source/spark:4.2.0",
        "the old settings",
    )
    assert "RolledBack" in world.events()


@pytest.mark.parametrize(
    ("restart", "words"),
    [
        ({"policy": "Window"}, "set window if, and only if, policy is Window"),
        (
            {"window": {"start": "02:00", "duration": "1h"}},
            "set window if, and only if, policy is Window",
        ),
        ({"policy": "Window", "window": {"start": "2:00", "duration": "1h"}}, "start"),
        (
            {"policy": "Window", "window": {"start": "02:00", "duration": "25h"}},
            "between 1m and 24h",
        ),
        (
            {
                "policy": "Window",
                "window": {"start": "02:00", "duration": "1h", "days": ["Sonntag"]},
            },
            "days",
        ),
        ({"policy": "Sometimes"}, "policy"),
        ({"nonce": -1}, "nonce"),
    ],
)
def test_the_api_server_rejects_invalid_policies(
    world: World, restart: dict[str, Any], words: str
) -> None:
    with pytest.raises(CommandError, match=words):
        world.apply(application=with_restart(world, **restart))
