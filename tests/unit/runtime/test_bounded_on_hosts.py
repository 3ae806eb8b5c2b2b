"""A bounded source on several hosts: each application ends when its host has read everything."""

from typing import Any

import pytest

from balanced_source_operator.resources.kinds import CONFIG_MAP
from support.bounded_drivers import Ending, bounded_source, condition
from support.cluster_story import NAMESPACE, Story
from support.host_drivers import application
from support.lost_hosts import SOURCE, newest, play_on, roles, with_policy
from support.played_story import played

WAIT = {"type": "Wait", "after": "1m"}
REASSIGN = {"type": "Reassign", "after": "1m"}
POLICIES = [WAIT, REASSIGN, {**REASSIGN, "guarantee": "AtLeastOnce"}]


async def until_finished(story: Story, drivers: Ending) -> None:
    await story.until(
        lambda: [drivers.step(), condition(story, "Ready") == ("True", "Finished")][1],
        "everything to be read",
    )


async def half_read(story: Story, policy: dict[str, Any], **spec: Any) -> Ending:
    """Begin a source whose host 1 has read its splits and has ended, while host 0 reads."""
    drivers = Ending(story, "0")
    await story.begin(
        parallelism=4,
        source=bounded_source(),
        application={**with_policy(**policy), **spec.pop("application", {})},
        **spec,
    )
    await story.until(lambda: [drivers.step(), drivers.ended["1"]][1], "host 1 to end")
    return drivers


async def lose_state(story: Story, drivers: Ending) -> None:
    await play_on(drivers, 10)
    await story.operators.pop().stop()
    story.server.remove(CONFIG_MAP, NAMESPACE, SOURCE.documents.state)
    story.start_operator()
    await play_on(drivers, 10)


def test_a_host_that_is_added_reads_the_splits_that_another_host_still_lets_go_of() -> None:
    async def play(story: Story) -> None:
        drivers = Ending(story, "0", "1")
        await story.begin(parallelism=4, source=bounded_source(), application=application(count=1))
        await play_on(drivers, 60)
        story.patch(application=application(count=2))

        await until_finished(story, drivers)

        assert drivers.launched == {"0": 1, "1": 1}
        assert len(drivers.of["1"].host.durable.positions) == 4
        drivers.check_each_once()

    played(play)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_host_that_has_read_everything_is_not_lost(policy: dict[str, Any]) -> None:
    async def play(story: Story) -> None:
        drivers = await half_read(story, policy)
        await play_on(drivers, 5)
        for _ in range(20):
            await play_on(drivers, 10)
            assert condition(story, "Ready") == ("True", "Reading")
            assert condition(story, "Progressing") == ("False", "Stable")
            assert condition(story, "Degraded")[0] == "False"
            assert story.sample("report_timestamp_seconds") is not None, "of host 0"
            assert story.sample("epoch_lag") == 0

        await until_finished(story, drivers)
        await play_on(drivers, 200)
        assert story.sample("report_timestamp_seconds") is None, "none is expected any more"

        assert condition(story, "Ready") == ("True", "Finished")
        assert condition(story, "Degraded")[0] == "False"
        assert roles(story) == {"0": "Member", "1": "Member"}
        assert drivers.launched == {"0": 1, "1": 1}
        assert "HostLost" not in story.events
        drivers.check_each_once()

    played(play)


def test_a_new_operator_does_not_take_a_host_that_has_ended_for_lost() -> None:
    async def play(story: Story) -> None:
        drivers = await half_read(story, REASSIGN)
        await play_on(drivers, 10)
        await story.operators.pop().stop()
        await play_on(drivers, 10)
        story.start_operator()
        await play_on(drivers, 150)

        assert condition(story, "Ready") == ("True", "Reading")
        await until_finished(story, drivers)
        assert drivers.launched == {"0": 1, "1": 1}
        drivers.check_each_once()

    played(play)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_host_that_has_ended_starts_again_if_the_state_is_lost(policy: dict[str, Any]) -> None:
    """Only its Spark checkpoint tells what it has read."""

    async def play(story: Story) -> None:
        drivers = await half_read(story, policy)
        await lose_state(story, drivers)

        await until_finished(story, drivers)
        assert condition(story, "Degraded")[0] == "False"
        drivers.check_each_once()

    played(play)


def test_a_program_that_always_ends_at_once_is_not_started_without_end() -> None:
    async def play(story: Story) -> None:
        drivers = await half_read(story, WAIT)
        drivers.absent.add("1")
        await lose_state(story, drivers)
        started = set[str]()
        for _ in range(60):
            await play_on(drivers, 10)
            for name, uid in drivers.uids("1").items():
                started.add(uid)
                drivers.complete(name)

        assert len(started) == 4
        assert condition(story, "Degraded") == ("True", "ApplicationEnded")

    played(play)


def test_a_host_that_ends_before_its_splits_are_read_is_told() -> None:
    async def play(story: Story) -> None:
        drivers = Ending(story, "0", "1")
        await story.begin(parallelism=4, source=bounded_source(), application=with_policy(**WAIT))
        await play_on(drivers, 30)
        drivers.complete(next(n for n in story.applications if "-h1-" in n))
        await play_on(drivers, 40)

        assert condition(story, "Degraded") == ("True", "ApplicationEnded")
        assert condition(story, "Ready")[0] == "False"
        await play_on(drivers, 60)
        assert "HostLost" in story.events

    played(play)


def test_a_host_starts_again_for_splits_that_it_gets_after_it_has_ended() -> None:
    """Host 2 is removed, and half of its splits go to a host whose query has ended."""

    async def play(story: Story) -> None:
        drivers = Ending(story, "0", "2")
        await story.begin(
            parallelism=6, source=bounded_source(), application=with_policy(3, **WAIT)
        )
        await story.until(lambda: [drivers.step(), drivers.ended["1"]][1], "host 1 to end")
        story.patch(application={"hosts": {"count": 2}})

        await until_finished(story, drivers)

        assert drivers.launched == {"0": 1, "1": 2, "2": 1}
        drivers.check_each_once()

    played(play)


def two_topics() -> dict[str, Any]:
    source = bounded_source()
    return {"kafka": {**source["kafka"], "subscription": {"topics": ["orders", "returns"]}}}


@pytest.mark.parametrize("count", [1, 2])
def test_hosts_start_again_for_splits_that_they_get_while_their_queries_end(count: int) -> None:
    """The queries read to the end of the assignment that they have, and see no later one."""

    async def play(story: Story) -> None:
        story.broker.create("main", "returns", range(2), end=3)
        drivers = Ending(story, "0", "1")
        await story.begin(
            parallelism=2, source=bounded_source(), application=with_policy(count, **WAIT)
        )
        await play_on(drivers, 30)
        story.patch(source=two_topics())
        await story.until(lambda: len(story.owners) == 10, "another assignment")
        for host, driver in drivers.of.items():
            driver.batch()
            driver.batch()
            driver.report()
            drivers.complete(newest(story, host))

        await until_finished(story, drivers)

        assert condition(story, "Degraded")[0] == "False"
        assert drivers.launched == {str(host): 2 for host in range(count)}
        drivers.check_each_once()

    played(play)


@pytest.mark.parametrize("count", [1, 2])
def test_splits_that_are_added_after_all_queries_have_ended_are_read(count: int) -> None:
    async def play(story: Story) -> None:
        story.broker.create("main", "returns", range(2), end=3)
        drivers = Ending(story)
        await story.begin(
            parallelism=2, source=bounded_source(), application=with_policy(count, **WAIT)
        )
        await play_on(drivers, 60)
        assert condition(story, "Ready") == ("True", "Finished")
        story.patch(source=two_topics())
        await play_on(drivers, 90)

        await until_finished(story, drivers)
        assert len(story.owners) == 10
        drivers.check_each_once()

    played(play)


@pytest.mark.parametrize("policy", [WAIT, REASSIGN])
def test_a_host_that_has_read_everything_is_removed_without_another_start(
    policy: dict[str, Any],
) -> None:
    async def play(story: Story) -> None:
        drivers = await half_read(story, policy)
        await play_on(drivers, 10)
        story.patch(application={"hosts": {"count": 1}})
        await play_on(drivers, 150)

        assert condition(story, "Ready") == ("True", "Reading")
        assert story.status.get("hosts", []) == []
        await until_finished(story, drivers)
        assert drivers.launched == {"0": 1, "1": 1}
        assert drivers.ended["0"] == 1
        drivers.check_each_once()

    played(play)


@pytest.mark.parametrize("policy", POLICIES)
def test_changed_settings_after_a_host_has_ended_leave_nothing_unread(
    policy: dict[str, Any],
) -> None:
    async def play(story: Story) -> None:
        drivers = await half_read(story, policy)
        await play_on(drivers, 10)
        story.patch(application={"image": "shop/orders:next"})
        await play_on(drivers, 20)
        assert drivers.ended == {"1": 2}, "it registered with everything read"
        assert "readers read 8 splits" in story.status["message"]
        assert condition(story, "Ready")[0] == "True"

        await until_finished(story, drivers)
        await play_on(drivers, 100)

        assert condition(story, "Ready") == ("True", "Finished")
        drivers.check_each_once()

    played(play)


def test_changed_settings_reach_a_host_that_reads_beside_one_that_has_ended() -> None:
    async def play(story: Story) -> None:
        drivers = await half_read(story, WAIT)
        await play_on(drivers, 10)
        story.patch(application={"image": "shop/orders:next"})
        await play_on(drivers, 60)

        assert drivers.images() == {"0": "shop/orders:next", "1": "shop/orders:next"}
        assert not drivers.ended["0"], "it had to read on until its end first"
        assert drivers.launched["0"] == 2
        await until_finished(story, drivers)
        drivers.check_each_once()

    played(play)


@pytest.mark.parametrize("readers", [2, 3, 6])
def test_a_rescale_after_a_host_has_ended_leaves_nothing_unread(readers: int) -> None:
    async def play(story: Story) -> None:
        drivers = await half_read(story, WAIT)
        await play_on(drivers, 10)
        story.patch(parallelism=readers)

        await until_finished(story, drivers)
        await play_on(drivers, 10)

        assert drivers.states() == {"0": "COMPLETED", "1": "COMPLETED"}
        drivers.check_each_once()

    played(play)


def test_the_autoscaler_misses_no_lag_when_everything_is_read() -> None:
    """Drivers that have ended report none, and an alert about that would never end."""

    async def play(story: Story) -> None:
        drivers = Ending(story, "0", "1")
        await story.begin(
            parallelism=4,
            source=bounded_source(),
            application=application(count=1),
            autoscaling={"maxReaders": 8},
        )
        await play_on(drivers, 60)
        assert "Autoscaling" in kinds(story)

        await until_finished(story, drivers)
        await story.until(lambda: "Autoscaling" not in kinds(story), "the condition to go")

    def kinds(story: Story) -> set[str]:
        return {condition["type"] for condition in story.status.get("conditions", [])}

    played(play)
