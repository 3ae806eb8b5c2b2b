"""A lost host at a real API server.

Who reads its splits is decided by policy, and the drivers are told.
"""

import json
from typing import Any

import pytest

from balanced_source.documents.storage import base_of
from balanced_source_operator.resources.kinds import DRAIN_ANNOTATION, KUBEFLOW_APPLICATION
from support.stand_in_driver import StandInDriver
from testbed.errors import CommandError

from .conftest import World

APPLICATIONS = f"{KUBEFLOW_APPLICATION.plural}.{KUBEFLOW_APPLICATION.group}"


def with_policy(world: World, **policy: Any) -> dict[str, Any]:
    return {
        **world.manifest()["spec"]["application"],
        "hosts": {"count": 2},
        "hostLossPolicy": policy,
    }


def step(*drivers: StandInDriver) -> bool:
    """Each driver reads a record of each of its splits."""
    for driver in drivers:
        driver.batch(rows_per_split=1)
    return True


def annotations(world: World, name: str) -> dict[str, str]:
    found = world.control_plane.get(APPLICATIONS, name, world.namespace)
    return dict(found["metadata"]["annotations"]) if found is not None else {}


def fail(world: World, name: str) -> None:
    """Say that an application has failed, as the Spark operator would."""
    failed = json.dumps({"status": {"applicationState": {"state": "FAILED"}, "driverInfo": {}}})
    world.kubectl(
        "patch", APPLICATIONS, name, "--subresource", "status", "--type", "merge", "-p", failed
    )


def test_the_policy_reaches_the_drivers_and_is_checked_by_the_api_server(world: World) -> None:
    for policy in (
        {"after": "59s"},
        {"after": "25h"},
        {"type": "Forget"},
        {"guarantee": "AtMostOnce"},
    ):
        with pytest.raises(CommandError, match="hostLossPolicy"):
            world.apply(application=with_policy(world, **policy))
    world.kafka.admin.create_topic(world.topic, partitions=2)
    world.apply(application=with_policy(world, type="Reassign", after="3m"))

    world.wait(lambda: world.config_map("assignment"), "the assignment")
    world.wait(lambda: world.source.assignment.report_within == 90.0, "the time without a report")
    world.source.patch({"application": {"hostLossPolicy": {"type": "Wait"}}})
    world.wait(lambda: world.source.assignment.report_within is None, "no limit")


@pytest.mark.e2e
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_lost_host_is_drained_and_starts_again(world: World) -> None:
    """A host counts as lost after a minute at the earliest, so `make test` leaves this out."""
    world.kafka.admin.create_topic(world.topic, partitions=6)
    world.apply(parallelism=2, application=with_policy(world, type="Reassign", after="1m"))
    name = f"{base_of('orders', '1', uid=world.source.get()['metadata']['uid'])}-1"
    world.wait(lambda: annotations(world, name), "the second application")
    first, lost = world.driver(), world.driver(host="1")
    world.wait(
        lambda: step(first, lost) and len(first.offset.owners) == len(lost.offset.owners) == 3,
        "both hosts",
    )
    lost.close()

    fail(world, name)
    world.wait(
        lambda: step(first) and DRAIN_ANNOTATION in annotations(world, name),
        "the drain attempt",
        120,
    )
    assert len(first.offset.owners) == 3, "nobody knows yet where the splits of host 1 stand"
    assert world.source.condition("Degraded")["reason"] == "HostLost"

    drain = world.driver(lost, host="1")
    world.wait(
        lambda: step(first, drain) and len(first.offset.owners) == 6, "all splits on the first host"
    )
    assert all(first.offset.positions[s] > p for s, p in lost.offset.positions.items())
    world.wait(lambda: step(first, drain) and annotations(world, name), "the application of host 1")
    drain.close()
    world.wait(
        lambda: step(first) and DRAIN_ANNOTATION not in annotations(world, name),
        "an ordinary application",
    )
    again = world.driver(drain, host="1")
    world.wait(lambda: step(first, again) and len(again.offset.owners) == 3, "its share", 60)
    world.wait_condition("Degraded", "False", timeout=60)
