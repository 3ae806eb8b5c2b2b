"""A source of several hosts is deleted, and applied again with other hosts, or none.

The Spark checkpoints of its hosts are still there; every document is gone.
"""

import asyncio
from typing import Any

import pytest

from balanced_source_operator.resources.identity import Identity
from balanced_source_operator.resources.kinds import POD
from support.cluster_story import NAMESPACE, Documents, Story
from support.host_drivers import Drivers, application
from support.lost_hosts import SOURCE, degraded, play_on, roles, with_policy
from support.played_story import played
from support.stage import Stage
from support.virtual_time import clock
from support.world import Driver, kafka_source


def remember(drivers: Drivers, *, hosts: int) -> None:
    """Give the drivers the Spark checkpoints and sinks of a former life of the source."""
    life = Stage(readers=4, hosts=hosts, source=kafka_source("main"))
    life.topic("orders", 8, cluster="main", end=5).running().adopts()
    for name, former in life.drivers.items():
        store: Any = Documents(drivers.story.server, name)
        mine = drivers.of.setdefault(name, Driver(store, drivers.story.broker, name))
        mine.offsets, mine.committed, mine.delivered = (
            former.offsets,
            former.committed,
            former.delivered,
        )


@pytest.mark.parametrize(("before", "after"), [(2, 1), (3, 1), (3, 2), (1, 3), (2, 3), (3, 3)])
def test_every_record_is_delivered_once_whatever_hosts_there_were(before: int, after: int) -> None:
    async def play(story: Story) -> None:
        drivers = Drivers(story)
        remember(drivers, hosts=before)

        await story.begin(parallelism=6, application=application(count=after))

        await drivers.rest(*(str(number) for number in range(after)))
        drivers.check_each_once()

    played(play)


@pytest.mark.parametrize("host", ["0", "1"])
def test_a_host_waits_for_the_driver_pods_of_its_namesake_of_the_former_source(host: str) -> None:
    """Both drivers would use one Spark checkpoint."""

    async def play(story: Story) -> None:
        former = Identity(namespace=NAMESPACE, name="orders", uid="former", host=host)
        name = f"{former.base}-1"
        labels = {
            **former.pod_labels,
            "spark-role": "driver",
            "sparkoperator.k8s.io/app-name": name,
        }
        metadata = {"namespace": NAMESPACE, "name": f"{name}-driver", "labels": labels}
        story.server.add(POD, {"metadata": metadata, "status": {"phase": "Running"}})
        drivers = Drivers(story)

        await story.begin(parallelism=6, application=application(count=2))
        await play_on(drivers, 60)
        assert f"{SOURCE.on_host(host).base}-1" not in story.applications
        assert f"{name}-driver must be gone" in story.status["message"]

        story.server.remove(POD, NAMESPACE, f"{name}-driver")
        await drivers.rest("0", "1")

    played(play)


def test_a_former_host_that_cannot_start_is_named_and_nothing_is_read_without_it() -> None:
    async def play(story: Story) -> None:
        drivers = Drivers(story)
        remember(drivers, hosts=2)
        drivers.absent.add("1")

        await story.begin(parallelism=6, application=application(count=1))
        await play_on(drivers, 200)

        assert roles(story) == {"0": "Member", "1": "Leaving"}
        message = degraded(story)["message"]
        assert message.startswith("Host 1 has not reported for 120 s. It may hold splits")
        assert "nothing is read until it has registered" in message
        drivers.absent.clear()
        await drivers.rest("0")
        assert degraded(story)["status"] == "False"
        drivers.check_each_once()

    played(play)


def test_with_reassignment_a_former_host_is_drained() -> None:
    async def play(story: Story) -> None:
        drivers = Drivers(story)
        remember(drivers, hosts=3)
        drivers.absent.add("2")
        policy = with_policy(2, type="Reassign", after="1m")

        await story.begin(parallelism=6, application=policy)
        await story.until(lambda: [drivers.step(), roles(story).get("2") == "Draining"][1], "it")
        drivers.absent.clear()

        await drivers.rest("0", "1")
        drivers.check_each_once()

    played(play)


def test_the_first_host_of_a_new_source_delays_the_others_until_its_deadline() -> None:
    """A host that cannot start costs time once, not the source."""

    async def play(story: Story) -> None:
        drivers = Drivers(story)
        drivers.absent.add("0")

        await story.begin(parallelism=6, application=application(count=3))
        began = clock()
        await story.until(
            lambda: [drivers.step(), "1" in roles(story) and drivers.of.get("1")][1], "host 1"
        )
        await asyncio.sleep(5)
        drivers.step()
        assert not drivers.of["1"].host.durable.owners

        await story.until(
            lambda: [
                drivers.step(),
                sum(len(d.host.durable.owners) for d in drivers.of.values()) == 8,
            ][1],
            "the others to read everything",
        )
        assert clock() - began < 700
        assert "Host 0 has not registered" in degraded(story)["message"]
        drivers.absent.clear()
        await drivers.rest("0", "1", "2")
        drivers.check_each_once()

    played(play)
