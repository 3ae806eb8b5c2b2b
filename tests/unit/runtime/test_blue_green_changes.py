"""What users do while a source restarts without a gap: at each stage of it, everything once."""

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import pytest

from balanced_source_operator.resources.kinds import BALANCED_SOURCE
from support.cluster_story import NAMESPACE, SPEC, Story
from support.host_drivers import Busy, base, images, running
from support.played_story import played
from support.virtual_time import clock
from unit.runtime.test_blue_green import NEXT, SECOND, application

AFTER_NEXT: Final = "balanced-source/spark:after-next"

Reached: TypeAlias = Callable[[Story, Busy], bool]

STAGES: Final[dict[str, Reached]] = {
    "the second one starts": lambda story, _: SECOND in story.applications,
    "the second one reads": lambda _, drivers: drivers.reads("1") > 0,
    "the second one reads most": lambda story, drivers: (
        2 * drivers.reads("1") > len(story.broker.ends)
    ),
    "the first one is back": lambda story, _: story.applications[2:] == ["orders-1"],
    "the second one gives back": lambda story, drivers: (
        len(story.applications) == 3 and drivers.reads("1") < len(story.broker.ends)
    ),
}


async def roll(story: Story, drivers: Busy, stage: str, **spec: Any) -> None:
    """Begin a restart, and let it come to a stage."""
    await story.begin(parallelism=4, application=application(), **spec)
    await drivers.rest("0", splits=len(story.broker.ends))
    story.patch(application=application(NEXT))
    reached = STAGES[stage]
    await story.until(lambda: reached(story, drivers) or (drivers.step(), False)[1], stage)


@pytest.mark.parametrize("stage", STAGES)
def test_a_new_number_of_readers_takes_effect(stage: str) -> None:
    async def play(story: Story) -> None:
        drivers = Busy(story)
        await roll(story, drivers, stage)

        story.patch(parallelism=7)

        await drivers.settle("0")
        assert set(story.owners.values()) == set(range(7))
        assert images(story) == {NEXT}
        drivers.check_each_once()

    played(play)


@pytest.mark.parametrize("stage", STAGES)
def test_suspend_stops_both_and_a_resumed_source_is_one_application(stage: str) -> None:
    async def play(story: Story) -> None:
        drivers = Busy(story)
        await roll(story, drivers, stage)

        story.patch(suspend=True)
        await story.until(lambda: not running(story), "no application")
        story.patch(suspend=False)

        await drivers.settle("0")
        assert images(story) == {NEXT}
        drivers.check_each_once()

    played(play)


@pytest.mark.parametrize("stage", STAGES)
def test_settings_that_change_again_are_the_ones_that_count(stage: str) -> None:
    async def play(story: Story) -> None:
        drivers = Busy(story)
        await roll(story, drivers, stage)

        story.patch(application=application(AFTER_NEXT))

        await story.until(
            lambda: [drivers.step(), images(story) == {AFTER_NEXT}][1], "the newest settings"
        )
        await drivers.settle("0")
        assert images(story) == {AFTER_NEXT}
        drivers.check_each_once()

    played(play)


@pytest.mark.parametrize("stage", STAGES)
def test_a_source_that_gets_another_strategy_meanwhile_ends_as_one_application(stage: str) -> None:
    async def play(story: Story) -> None:
        drivers = Busy(story)
        await roll(story, drivers, stage)

        plain = application(NEXT)
        story.patch(application={**plain, "restart": {"strategy": None}})

        await drivers.settle("0")
        assert images(story) == {NEXT}
        drivers.check_each_once()

    played(play)


@pytest.mark.parametrize("stage", STAGES)
def test_new_splits_are_read_too(stage: str) -> None:
    async def play(story: Story) -> None:
        drivers = Busy(story)
        await roll(story, drivers, stage)

        story.broker.create("main", "orders", range(12), end=3)

        await drivers.settle("0", splits=12)
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

        await drivers.settle("0", splits=12)
        assert images(story) == {NEXT}
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


def test_the_second_application_has_names_of_its_own() -> None:
    assert SECOND.startswith(base("1"))
