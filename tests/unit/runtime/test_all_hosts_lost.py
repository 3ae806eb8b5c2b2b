"""Hosts are gone for long. What is not theirs is read by the hosts that run."""

import pytest

from balanced_source_operator.resources.kinds import KUBEFLOW_APPLICATION
from support.cluster_story import NAMESPACE, Story
from support.host_drivers import Drivers
from support.lost_hosts import degraded, is_drain, lose, newest, play_on, roles, with_policy
from support.played_story import played


async def all_lost(story: Story, drivers: Drivers, **policy: str) -> None:
    """Both hosts have read, then both fail, as with their node; only host 0 comes back."""
    await story.begin(parallelism=4, application=with_policy(after="1m", **policy))
    await drivers.rest("0", "1")
    for host in ("0", "1"):
        lose(drivers, host)
    await play_on(drivers, 5)
    drivers.absent.discard("0")
    story.broker.ends = {split: end + 3 for split, end in story.broker.ends.items()}


async def until_told(story: Story, drivers: Drivers) -> None:
    """Wait until a condition names the loss of a host."""
    await story.until(
        lambda: [drivers.step(), degraded(story)["reason"] == "HostLost"][1], "the loss"
    )


def test_the_host_that_is_back_reads_on_and_the_splits_of_the_other_wait() -> None:
    async def play(story: Story) -> None:
        drivers = Drivers(story)
        await all_lost(story, drivers, type="Wait")

        await until_told(story, drivers)
        await play_on(drivers, 10)

        assert all(drivers.of["0"].position(s) == story.broker.ends[s] for s in held(drivers, "0"))
        assert roles(story) == {"0": "Member", "1": "Member"}
        assert (
            "Its 4 splits must wait until its application runs again" in degraded(story)["message"]
        )
        drivers.absent.clear()
        await drivers.rest("0", "1")
        drivers.check_each_once()

    played(play)


@pytest.mark.parametrize("guarantee", ["ExactlyOnce", "AtLeastOnce"])
def test_the_host_that_is_back_gets_the_splits_of_the_other(guarantee: str) -> None:
    async def play(story: Story) -> None:
        drivers = Drivers(story)
        await all_lost(story, drivers, type="Reassign", guarantee=guarantee)

        await story.until(
            lambda: [drivers.step(), roles(story)["1"] != "Member"][1], "host 1 to be given up"
        )
        if guarantee == "ExactlyOnce":
            drivers.absent.clear()  # the drain attempt
        await story.until(
            lambda: [drivers.step(), len(held(drivers, "0")) == 8][1], "host 0 to read all"
        )
        drivers.absent.clear()
        await drivers.rest("0", "1")
        drivers.check_each_once()

    played(play)


@pytest.mark.parametrize("restarts", [False, True])
def test_new_partitions_do_not_wait_for_a_lost_host(*, restarts: bool) -> None:
    async def play(story: Story) -> None:
        drivers = Drivers(story)
        await story.begin(parallelism=4, application=with_policy(type="Wait", after="1m"))
        await drivers.rest("0", "1")
        lose(drivers, "1", is_marked=False)
        await until_told(story, drivers)
        if restarts:
            await story.operators.pop().stop()
            story.start_operator()
            await play_on(drivers, 70)

        story.broker.create("main", "orders", range(8, 16), end=10)
        await story.until(
            lambda: [drivers.step(), len(held(drivers, "0")) == 12][1], "host 0 to read all of them"
        )

        assert len(held(drivers, "1")) == 4, "it may still read them"
        drivers.absent.clear()
        await story.until(
            lambda: [drivers.step(), len(held(drivers, "1")) == 8][1], "host 1 to get its share"
        )
        await drivers.rest("0", "1", splits=16)
        drivers.check_each_once()

    played(play)


def held(drivers: Drivers, host: str) -> set[object]:
    return set(drivers.of[host].host.durable.owners)


@pytest.mark.parametrize("policy", ["Wait", "Reassign"])
@pytest.mark.parametrize("is_marked", [False, True])
def test_the_host_that_reads_stays_while_the_one_that_is_to_stay_is_lost(
    policy: str, *, is_marked: bool
) -> None:
    async def play(story: Story) -> None:
        drivers = Drivers(story)
        spec = with_policy(type=policy, after="1m")
        await story.begin(parallelism=4, application=spec)
        await drivers.rest("0", "1")
        lose(drivers, "0", is_marked=is_marked)
        await until_told(story, drivers)

        story.patch(application={"hosts": {"count": 1}})
        story.broker.ends = {split: end + 3 for split, end in story.broker.ends.items()}
        await play_on(drivers, 60)

        assert all(drivers.of["1"].position(s) == story.broker.ends[s] for s in held(drivers, "1"))
        assert len(held(drivers, "1")) >= 4
        drivers.absent.clear()
        await drivers.rest("0")
        drivers.check_each_once()

    played(play)


def test_a_host_that_was_to_leave_reads_on_if_the_other_one_is_lost_meanwhile() -> None:
    async def play(story: Story) -> None:
        drivers = Drivers(story)
        await story.begin(parallelism=4, application=with_policy(type="Reassign", after="1m"))
        await drivers.rest("0", "1")
        lose(drivers, "0", is_marked=False)
        await play_on(drivers, 10)
        story.patch(application={"hosts": {"count": 1}})

        await story.until(lambda: [drivers.step(), is_drain(story, "0")][1], "the drain attempt")

        drivers.absent.clear()
        await drivers.rest("0")
        drivers.check_each_once()

    played(play)


def test_the_only_host_that_reads_does_not_restart_before_the_lost_one_is_back() -> None:
    async def play(story: Story) -> None:
        drivers = Drivers(story)
        await story.begin(parallelism=4, application=with_policy(type="Wait", after="1m"))
        await drivers.rest("0", "1")
        lose(drivers, "1", is_marked=False)
        await until_told(story, drivers)

        story.patch(application={"image": "next"})
        await play_on(drivers, 60)

        assert image(story, "1") == "next", "it may be what helps"
        assert image(story, "0") != "next"
        assert len(held(drivers, "0")) == 4
        drivers.absent.clear()
        await story.until(
            lambda: [drivers.step(), image(story, "0") == "next"][1], "host 0 to restart"
        )
        await drivers.rest("0", "1")
        drivers.check_each_once()

    played(play)


def image(story: Story, host: str) -> str | None:
    found = story.server.find(KUBEFLOW_APPLICATION, NAMESPACE, newest(story, host))
    return found["spec"].get("image") if found is not None else None
