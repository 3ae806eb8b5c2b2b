"""What users do while a source restarts: at each stage of it, everything is read once.

A source with one application restarts without a gap (blue/green), one with several in turn.
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Final, TypeAlias

import pytest

from balanced_source_operator.resources.kinds import BALANCED_SOURCE, KUBEFLOW_APPLICATION
from support import host_drivers
from support.broken_hosts import BrokenHosts
from support.cluster_story import NAMESPACE, Story
from support.host_drivers import Busy, running
from support.played_story import played
from support.rolls import AFTER_NEXT, NEXT, TWO_CLUSTERS, Roll
from support.virtual_time import clock
from unit.runtime.test_blue_green import SECOND
from unit.runtime.test_blue_green import application as with_a_second_one

BLUE_GREEN: Final = Roll(
    hosts=("0",),
    application=with_a_second_one,
    stages={
        "the second one starts": lambda story, _: SECOND in story.applications,
        "the second one reads": lambda _, drivers: drivers.reads("1") > 0,
        "the second one reads most": lambda story, drivers: (
            2 * drivers.reads("1") > len(story.broker.ends)
        ),
        "the first one is back": lambda story, _: story.applications[2:] == ["orders-1"],
        "the second one gives back": lambda story, drivers: (
            len(story.applications) == 3 and drivers.reads("1") < len(story.broker.ends)
        ),
    },
)


def on_hosts(image: str | None, count: int = 3) -> dict[str, Any]:
    made = host_drivers.application(count=count)
    return made if image is None else {**made, "image": image}


IN_TURN: Final = Roll(
    hosts=("0", "1", "2"),
    application=on_hosts,
    stages={
        "the first host hands over": lambda _, drivers: drivers.reads("0") == 0,
        "the first host is back": lambda story, _: len(story.applications) == 4,
        "the second host hands over": lambda story, drivers: (
            len(story.applications) == 4 and drivers.reads("0") > 0 and drivers.reads("1") == 0
        ),
        "the last host is back": lambda story, _: len(story.applications) == 6,
    },
)

EACH: Final = [
    pytest.param(roll, stage, id=stage) for roll in (BLUE_GREEN, IN_TURN) for stage in roll.stages
]

Then: TypeAlias = Callable[[Story, Busy], Awaitable[None]]


def play(roll: Roll, stage: str, then: Then, **spec: Any) -> None:
    """Play a story: a restart comes to a stage, and then something happens."""

    async def story_of(story: Story) -> None:
        drivers = Busy(story)
        if "source" in spec:
            story.broker.create("other", "orders", range(4), end=5)
        await roll.begin(story, drivers, stage, **spec)
        await then(story, drivers)

    played(story_of)


@pytest.mark.parametrize(("roll", "stage"), EACH)
def test_another_number_of_readers_takes_effect(roll: Roll, stage: str) -> None:
    async def then(story: Story, drivers: Busy) -> None:
        story.patch(parallelism=7)
        await roll.end(story, drivers)
        assert set(story.owners.values()) == set(range(7))

    play(roll, stage, then)


@pytest.mark.parametrize(("roll", "stage"), EACH)
def test_settings_that_change_again_are_the_ones_that_count(roll: Roll, stage: str) -> None:
    async def then(story: Story, drivers: Busy) -> None:
        story.patch(application=roll.application(AFTER_NEXT))
        await roll.end(story, drivers, image=AFTER_NEXT)

    play(roll, stage, then)


@pytest.mark.parametrize(("roll", "stage"), EACH)
def test_suspend_stops_everything_and_resume_starts_the_newest_settings(
    roll: Roll, stage: str
) -> None:
    async def then(story: Story, drivers: Busy) -> None:
        story.patch(suspend=True)
        await story.until(lambda: not running(story), "no application")
        story.patch(suspend=False)
        await roll.end(story, drivers)

    play(roll, stage, then)


@pytest.mark.parametrize(("roll", "stage"), EACH)
def test_new_splits_are_read_too(roll: Roll, stage: str) -> None:
    async def then(story: Story, drivers: Busy) -> None:
        story.broker.create("main", "orders", range(12), end=3)
        await roll.end(story, drivers, splits=12)

    play(roll, stage, then)


@pytest.mark.parametrize(("roll", "stage"), EACH)
def test_several_clusters_one_of_them_silent(roll: Roll, stage: str) -> None:
    """A cluster that does not answer holds up neither the restart nor the others."""

    async def then(story: Story, drivers: Busy) -> None:
        story.broker.down.add("other")
        due = clock() + 30
        await story.until(lambda: [drivers.step(), clock() >= due][1], "half a minute")
        story.broker.down.clear()
        await roll.end(story, drivers, splits=12)

    play(roll, stage, then, source=TWO_CLUSTERS)


@pytest.mark.parametrize(("roll", "stage"), EACH)
def test_a_deleted_source_leaves_nothing_behind(roll: Roll, stage: str) -> None:
    async def then(story: Story, _: Busy) -> None:
        story.server.remove(BALANCED_SOURCE, NAMESPACE, "orders")
        await story.until(lambda: not running(story), "no application")

    play(roll, stage, then)


@pytest.mark.parametrize(("roll", "stage"), EACH)
def test_a_source_that_is_deleted_and_applied_again_continues(roll: Roll, stage: str) -> None:
    """Only the Spark checkpoints of its hosts are left."""

    async def then(story: Story, drivers: Busy) -> None:
        body = story.server.find(BALANCED_SOURCE, NAMESPACE, "orders")
        story.server.remove(BALANCED_SOURCE, NAMESPACE, "orders")
        await story.until(lambda: not running(story), "no application")
        await story.end()
        story.operators.clear()
        story.seen.clear()  # epochs begin again
        metadata = {name: body["metadata"][name] for name in ("namespace", "name", "uid")}
        story.server.add(BALANCED_SOURCE, {**body, "metadata": metadata, "status": {}})
        story.start_operator()
        await roll.end(story, drivers)

    play(roll, stage, then)


@pytest.mark.parametrize("stage", BLUE_GREEN.stages)
def test_a_source_that_gets_another_strategy_meanwhile_ends_as_one_application(stage: str) -> None:
    async def then(story: Story, drivers: Busy) -> None:
        plain = BLUE_GREEN.application(NEXT)
        story.patch(application={**plain, "restart": {"strategy": None}})
        begun = clock()
        await BLUE_GREEN.end(story, drivers)
        assert clock() - begun < 120, "the applications do not wait for each other"

    play(BLUE_GREEN, stage, then)


@pytest.mark.parametrize("stage", IN_TURN.stages)
@pytest.mark.parametrize("count", [1, 2, 4])
def test_another_number_of_hosts_takes_effect(stage: str, count: int) -> None:
    async def then(story: Story, drivers: Busy) -> None:
        story.patch(application=on_hosts(NEXT, count))
        wanted = replace(IN_TURN, hosts=tuple(map(str, range(count))))
        await wanted.end(story, drivers)

    play(IN_TURN, stage, then)


@pytest.mark.parametrize("stage", IN_TURN.stages)
def test_a_host_that_fails_meanwhile_comes_back_and_the_restart_continues(stage: str) -> None:
    async def then(story: Story, drivers: Busy) -> None:
        name = next(n for n in running(story) if "-h2-" in n)
        failed = {"status": {"applicationState": {"state": "FAILED", "errorMessage": "lost"}}}
        story.server.edit(KUBEFLOW_APPLICATION, NAMESPACE, name, failed)
        await IN_TURN.end(story, drivers)

    play(IN_TURN, stage, then)


@pytest.mark.parametrize("stage", IN_TURN.stages)
def test_a_host_that_never_comes_back_does_not_keep_the_others_on_old_settings(stage: str) -> None:
    """Its failing counts against the new settings once; then the others restart without it."""

    async def play(story: Story) -> None:
        drivers = BrokenHosts(story)
        await IN_TURN.begin(story, drivers, stage)
        drivers.works = lambda host, _: host != "2"
        drivers.lose("2")
        await drivers.pass_time(1000)
        story.patch(application={"restart": {"nonce": 1}})
        await drivers.until(
            lambda: all(drivers.images().get(host) == NEXT for host in ("0", "1")),
            "the other hosts",
            within=1500,
        )
        assert drivers.most_stopped <= 1
        drivers.works = lambda *_: True
        drivers.lose("2")
        await IN_TURN.end(story, drivers)

    played(play)


@pytest.mark.parametrize("stage", IN_TURN.stages)
def test_an_operator_that_starts_meanwhile_continues(stage: str) -> None:
    async def then(story: Story, drivers: Busy) -> None:
        await story.operators.pop().stop()
        story.start_operator()
        await IN_TURN.end(story, drivers)

    play(IN_TURN, stage, then)


def test_the_second_application_has_names_of_its_own() -> None:
    assert SECOND.startswith(host_drivers.base("1"))
