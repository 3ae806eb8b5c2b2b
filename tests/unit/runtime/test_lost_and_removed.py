"""A lost host is removed, or a host is lost while it is removed: its splits do not wait for it."""

import pytest

from balanced_source_operator.resources.kinds import KUBEFLOW_APPLICATION
from support.cluster_story import NAMESPACE, Story
from support.host_drivers import Drivers, application
from support.lost_hosts import SOURCE, degraded, is_drain, lose, play_on, roles, with_policy
from support.played_story import played


@pytest.mark.parametrize("is_settled", [True, False], ids=["in time", "late"])
def test_a_drain_continues_when_its_host_is_not_wanted_any_more(*, is_settled: bool) -> None:
    """An ordinary application in its place would have all executors, and may be held by limits."""

    async def play(story: Story) -> None:
        drivers = Drivers(story)
        await story.begin(
            parallelism=6,
            restart={"maxFailures": 1},
            application=with_policy(3, type="Reassign", after="1m"),
        )
        await drivers.rest("0", "1", "2")
        story.broker.ends = {split: end + 3 for split, end in story.broker.ends.items()}
        drivers.of["2"].batch(die="delivered")
        lose(drivers, "2")
        await story.until(lambda: [drivers.step(), is_drain(story, "2")][1], "the drain attempt")
        if is_settled:
            drivers.absent.clear()

        story.patch(application=with_policy(2, type="Reassign", after="1m"))
        if not is_settled:
            await play_on(drivers, 300)
            assert roles(story)["2"] == "Draining"
            assert is_drain(story, "2")
            drivers.absent.clear()

        await drivers.rest("0", "1")
        drivers.check_each_once()

    played(play)


@pytest.mark.parametrize("is_marked", [True, False], ids=["failed", "hangs"])
@pytest.mark.parametrize("is_lost_before", [True, False], ids=["lost before", "lost after"])
@pytest.mark.parametrize("guarantee", ["ExactlyOnce", "AtLeastOnce"])
def test_a_host_that_is_lost_while_it_leaves_does_not_keep_its_splits(
    guarantee: str, *, is_lost_before: bool, is_marked: bool
) -> None:
    policy = {"type": "Reassign", "after": "1m", "guarantee": guarantee}

    async def play(story: Story) -> None:
        drivers = Drivers(story)
        await story.begin(parallelism=6, application=with_policy(3, **policy))
        await drivers.rest("0", "1", "2")
        if is_lost_before:
            lose(drivers, "2", is_marked=is_marked)
            await play_on(drivers, 20)

        story.patch(application=with_policy(2, **policy))
        if not is_lost_before:
            lose(drivers, "2", is_marked=is_marked)

        if guarantee == "ExactlyOnce":
            await story.until(lambda: [drivers.step(), is_drain(story, "2")][1], "the drain")
            assert roles(story)["2"] == "Draining"
            assert "drain attempt" in degraded(story)["message"]
            drivers.absent.clear()
        await drivers.rest("0", "1")
        assert degraded(story)["status"] == "False"
        assert "2" not in {
            SOURCE.host_of(m["metadata"]["name"])
            for m in story.server.select(KUBEFLOW_APPLICATION, NAMESPACE)
        }
        drivers.check_each_once()

    played(play)


def test_a_lost_host_that_leaves_is_waited_for_unless_the_user_wants_more() -> None:
    async def play(story: Story) -> None:
        drivers = Drivers(story)
        await story.begin(parallelism=6, application=application(count=3))
        await drivers.rest("0", "1", "2")
        lose(drivers, "2", is_marked=False)
        story.patch(application=application(count=2))

        await play_on(drivers, 200)

        assert roles(story)["2"] == "Leaving"
        message = degraded(story)["message"]
        assert "Host 2 has not reported for 120 s. Its 2 splits must wait until" in message

    played(play)


@pytest.mark.parametrize("after", [2, 3])
def test_duplicates_that_are_accepted_later_end_the_wait_for_a_drain_attempt(after: int) -> None:
    policy = {"type": "Reassign", "after": "1m"}

    async def play(story: Story) -> None:
        drivers = Drivers(story)
        await story.begin(parallelism=6, application=with_policy(3, **policy))
        await drivers.rest("0", "1", "2")
        lose(drivers, "2")
        await story.until(lambda: [drivers.step(), is_drain(story, "2")][1], "the drain")
        await play_on(drivers, 200)
        assert roles(story)["2"] == "Draining"

        story.patch(application=with_policy(after, **policy, guarantee="AtLeastOnce"))
        await story.until(
            lambda: [
                drivers.step(),
                sum(len(drivers.of[h].host.durable.owners) for h in "01") == 8,
            ][1],
            "the others to read everything",
        )

        drivers.absent.clear()
        await drivers.rest(*(str(number) for number in range(after)))
        assert degraded(story)["status"] == "False"
        drivers.check_each_once()

    played(play)
