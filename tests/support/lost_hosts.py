"""What stories of lost hosts have in common."""

import asyncio
from typing import Any

from balanced_source_operator.resources.identity import Identity
from balanced_source_operator.resources.kinds import DRAIN_ANNOTATION, KUBEFLOW_APPLICATION
from support.cluster_story import NAMESPACE, Story
from support.host_drivers import Drivers, application
from support.virtual_time import clock
from support.world import UID

SOURCE = Identity(namespace=NAMESPACE, name="orders", uid=UID)


def with_policy(count: int = 2, **policy: Any) -> dict[str, Any]:
    return {**application(count=count), "hostLossPolicy": policy}


async def play_on(drivers: Drivers, seconds: float) -> None:
    due = clock() + seconds
    while clock() < due:
        drivers.step()
        await asyncio.sleep(2)


def degraded(story: Story) -> dict[str, Any]:
    return next(c for c in story.status["conditions"] if c["type"] == "Degraded")


def lose(drivers: Drivers, host: str, *, is_marked: bool = True) -> None:
    """The driver of a host falls silent; with `is_marked`, its application fails as well."""
    drivers.absent.add(host)
    if is_marked:
        failed = {"status": {"applicationState": {"state": "FAILED"}}}
        drivers.story.server.edit(
            KUBEFLOW_APPLICATION, NAMESPACE, newest(drivers.story, host), failed
        )


def newest(story: Story, host: str) -> str:
    found = [
        str(m["metadata"]["name"]) for m in story.server.select(KUBEFLOW_APPLICATION, NAMESPACE)
    ]
    return next(name for name in found if SOURCE.host_of(name) == host)


def is_drain(story: Story, host: str) -> bool:
    return any(
        DRAIN_ANNOTATION in m["metadata"]["annotations"]
        for m in story.server.select(KUBEFLOW_APPLICATION, NAMESPACE)
        if SOURCE.host_of(m["metadata"]["name"]) == host
    )


def roles(story: Story) -> dict[str, str]:
    return {host["name"]: host["role"] for host in story.status.get("hosts", [])}
