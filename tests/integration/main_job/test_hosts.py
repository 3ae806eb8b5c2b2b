"""Two applications of one source, at a real API server, with the rights that each is given."""

import pytest

from balanced_source.documents.storage import base_of
from balanced_source_operator.spec.hosts import MAX_HOSTS
from support.stand_in_driver import StandInDriver
from testbed.errors import CommandError

from .conftest import World

APPLICATIONS = "sparkapplications.sparkoperator.k8s.io"


def step(*drivers: StandInDriver) -> bool:
    """Each driver reads a record of each of its splits."""
    for driver in drivers:
        driver.batch(rows_per_split=1)
    return True


def hosts_of(world: World) -> dict[str, int]:
    return {host["name"]: host["splits"] for host in world.source.status.get("hosts", [])}


def test_splits_move_to_a_second_application_and_back_at_their_positions(world: World) -> None:
    world.kafka.admin.create_topic(world.topic, partitions=6)
    world.apply(parallelism=2)
    first = world.driver()
    first.adopt(parallelism=2)
    step(first)

    world.source.patch({"application": {"hosts": {"count": 2}}})
    base = base_of("orders", "1", uid=world.source.get()["metadata"]["uid"])
    world.wait(
        lambda: world.control_plane.get(APPLICATIONS, f"{base}-1", world.namespace),
        "the second application",
    )
    assert len(first.offset.owners) == 6, "nothing moves before its driver has registered"

    second = world.driver(host="1")
    world.wait(
        lambda: step(first, second) and len(second.offset.owners) == 3, "the second host's share"
    )
    world.wait(lambda: hosts_of(world) == {"0": 3, "1": 3}, "the status")
    assert first.offset.owners.keys().isdisjoint(second.offset.owners)
    assert all(
        second.offset.positions[s] > first.offset.retained.get(s, 0) for s in second.offset.owners
    )

    world.source.patch({"application": {"hosts": {"count": 1}}})
    world.wait(
        lambda: step(first, second) and len(first.offset.owners) == 6,
        "all splits on the first host",
    )
    world.wait(
        lambda: step(first, second) and not hosts_of(world), "the second host to be forgotten"
    )
    names = [
        a["metadata"]["name"] for a in world.control_plane.items(APPLICATIONS, world.namespace)
    ]
    assert names == ["orders-1"]
    assert world.source.assignment.incarnations == {"0": 1}


def test_the_api_server_rejects_invalid_hosts(world: World) -> None:
    for hosts in ({}, {"count": 1, "readersPerHost": 1}, {"count": 0}, {"count": MAX_HOSTS + 1}):
        with pytest.raises(CommandError, match="hosts"):
            world.apply(application={**world.manifest()["spec"]["application"], "hosts": hosts})
