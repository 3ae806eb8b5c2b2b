"""Hosts of a source restart in turn, and something else changes: everything is read once."""

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import pytest

from balanced_source_operator.resources.kinds import BALANCED_SOURCE, KUBEFLOW_APPLICATION
from support.cluster_story import NAMESPACE, SPEC, Story
from support.host_drivers import Busy, application, images, running
from support.played_story import played
from support.virtual_time import clock

NEXT: Final = "balanced-source/spark:next"
AFTER_NEXT: Final = "balanced-source/spark:after-next"
HOSTS: Final = ("0", "1", "2")

Reached: TypeAlias = Callable[[Story, Busy], bool]

STAGES: Final[dict[str, Reached]] = {
    "the first host hands over": lambda _, drivers: drivers.reads("0") == 0,
    "the first host is back": lambda story, _: len(story.applications) == 4,
    "the second host hands over": lambda story, drivers: (
        len(story.applications) == 4 and drivers.reads("0") > 0 and drivers.reads("1") == 0
    ),
    "the last host is back": lambda story, _: len(story.applications) == 6,
}


def hosts_of(image: str, count: int = 3, **more: Any) -> dict[str, Any]:
    return {**application(count=count), "image": image, **more}


async def roll(story: Story, drivers: Busy, stage: str, **spec: Any) -> None:
    """Begin a restart, and let it come to a stage."""
    await story.begin(parallelism=6, application=application(count=3), **spec)
    await drivers.rest(*HOSTS, splits=len(story.broker.ends))
    story.patch(application=hosts_of(NEXT))
    reached = STAGES[stage]
    await story.until(lambda: reached(story, drivers) or (drivers.step(), False)[1], stage)


async def until_all_have(story: Story, drivers: Busy, image: str) -> None:
    await story.until(lambda: [drivers.step(), images(story) == {image}][1], "the settings")


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("count", [1, 2, 4])
def test_another_number_of_hosts_takes_effect(stage: str, count: int) -> None:
    async def play(story: Story) -> None:
        drivers = Busy(story)
        await roll(story, drivers, stage)

        story.patch(application=hosts_of(NEXT, count))

        await until_all_have(story, drivers, NEXT)
        await drivers.settle(*map(str, range(count)))
        drivers.check_each_once()

    played(play)


@pytest.mark.parametrize("stage", STAGES)
def test_another_number_of_readers_takes_effect(stage: str) -> None:
    async def play(story: Story) -> None:
        drivers = Busy(story)
        await roll(story, drivers, stage)

        story.patch(parallelism=8)

        await until_all_have(story, drivers, NEXT)
        await drivers.settle(*HOSTS)
        assert set(story.owners.values()) == set(range(8))
        drivers.check_each_once()

    played(play)


@pytest.mark.parametrize("stage", STAGES)
def test_settings_that_change_again_are_the_ones_that_count(stage: str) -> None:
    async def play(story: Story) -> None:
        drivers = Busy(story)
        await roll(story, drivers, stage)

        story.patch(application=hosts_of(AFTER_NEXT))

        await until_all_have(story, drivers, AFTER_NEXT)
        await drivers.settle(*HOSTS)
        drivers.check_each_once()

    played(play)


@pytest.mark.parametrize("stage", STAGES)
def test_suspend_stops_all_hosts_and_resume_starts_them_with_the_newest_settings(
    stage: str,
) -> None:
    async def play(story: Story) -> None:
        drivers = Busy(story)
        await roll(story, drivers, stage)

        story.patch(suspend=True)
        await story.until(lambda: not running(story), "no application")
        story.patch(suspend=False)

        await drivers.settle(*HOSTS)
        assert images(story) == {NEXT}
        drivers.check_each_once()

    played(play)


@pytest.mark.parametrize("stage", STAGES)
def test_a_host_that_fails_meanwhile_comes_back_and_the_restart_continues(stage: str) -> None:
    async def play(story: Story) -> None:
        drivers = Busy(story)
        await roll(story, drivers, stage)

        name = next(n for n in running(story) if "-h2-" in n)
        failed = {"status": {"applicationState": {"state": "FAILED", "errorMessage": "lost"}}}
        story.server.edit(KUBEFLOW_APPLICATION, NAMESPACE, name, failed)

        await until_all_have(story, drivers, NEXT)
        await drivers.settle(*HOSTS)
        drivers.check_each_once()

    played(play)


@pytest.mark.parametrize("stage", STAGES)
def test_several_clusters_one_of_them_silent(stage: str) -> None:
    """A cluster that does not answer holds up neither the restart nor the others."""
    kafka = SPEC["source"]["kafka"]
    clusters = [*kafka["clusters"], {"name": "other", "bootstrapServers": "other:9092"}]

    async def play(story: Story) -> None:
        drivers = Busy(story)
        story.broker.create("other", "orders", range(4), end=5)
        await roll(story, drivers, stage, source={"kafka": {**kafka, "clusters": clusters}})

        story.broker.down.add("other")
        due = clock() + 30
        await story.until(lambda: [drivers.step(), clock() >= due][1], "half a minute")
        story.broker.down.clear()

        await until_all_have(story, drivers, NEXT)
        await drivers.settle(*HOSTS, splits=12)
        drivers.check_each_once()

    played(play)


@pytest.mark.parametrize("stage", STAGES)
def test_new_splits_are_read_too(stage: str) -> None:
    async def play(story: Story) -> None:
        drivers = Busy(story)
        await roll(story, drivers, stage)

        story.broker.create("main", "orders", range(12), end=3)

        await until_all_have(story, drivers, NEXT)
        await drivers.settle(*HOSTS, splits=12)
        drivers.check_each_once()

    played(play)


@pytest.mark.parametrize("stage", STAGES)
def test_an_operator_that_starts_meanwhile_continues(stage: str) -> None:
    async def play(story: Story) -> None:
        drivers = Busy(story)
        await roll(story, drivers, stage)

        await story.operators.pop().stop()
        story.start_operator()

        await until_all_have(story, drivers, NEXT)
        await drivers.settle(*HOSTS)
        drivers.check_each_once()

    played(play)


@pytest.mark.parametrize("stage", STAGES)
def test_a_deleted_source_leaves_nothing_behind(stage: str) -> None:
    async def play(story: Story) -> None:
        drivers = Busy(story)
        await roll(story, drivers, stage)

        story.server.remove(BALANCED_SOURCE, NAMESPACE, "orders")

        await story.until(lambda: not running(story), "no application")

    played(play)
