"""The annotation that keeps changes of the spec from taking effect."""

import pytest

from balanced_source_operator.resources.kinds import (
    BALANCED_SOURCE,
    KUBEFLOW_APPLICATION,
    PAUSED_ANNOTATION,
)
from support.cluster_story import NAMESPACE, Story
from support.played_story import played
from support.virtual_time import clock


def pause(story: Story, value: str | None = "true") -> None:
    annotations = {"metadata": {"annotations": {PAUSED_ANNOTATION: value}}}
    story.server.edit(BALANCED_SOURCE, NAMESPACE, "orders", annotations)


def is_said(story: Story) -> bool:
    """Whether the condition Paused is there; it is never False."""
    found = [c for c in story.status.get("conditions", []) if c["type"] == "Paused"]
    assert all((c["status"], c["reason"]) == ("True", "PausedByAnnotation") for c in found)
    return bool(found)


def observed(story: Story, kind: str = "Progressing") -> int:
    """Return the generation of the spec that a condition is about."""
    found = next(c for c in story.status["conditions"] if c["type"] == kind)
    return int(found["observedGeneration"])


async def read(story: Story) -> None:
    await story.launched()
    story.driver.start()
    await story.adopted(parallelism=2, splits=8)


async def waited(story: Story, seconds: float = 60) -> None:
    began = clock()
    await story.until(lambda: clock() - began > seconds, "the operator to do nothing")


@pytest.mark.parametrize("is_restarted", [False, True], ids=["in memory", "after a restart"])
def test_changes_wait_until_the_annotation_is_removed(is_restarted: bool) -> None:
    async def play(story: Story) -> None:
        await story.begin()
        await read(story)
        pause(story)
        await story.until(lambda: is_said(story), "the condition")
        if is_restarted:
            for operator in list(story.operators):
                await operator.stop()
                story.operators.remove(operator)
            story.start_operator(name="operator-2")

        story.patch(parallelism=4, application={"image": "balanced-source/spark:next"})
        await waited(story)
        await story.adopted(parallelism=2, splits=8)
        assert is_said(story)
        assert observed(story) == observed(story, "Ready") < story.status["observedGeneration"]
        epoch = story.status["epoch"]
        assert "ReplacingApplication" not in story.events

        pause(story, None)
        await story.until(lambda: story.status["epoch"] > epoch, "four readers")
        await story.until(lambda: "ReplacingApplication" in story.events, "another image")
        await story.until(lambda: not is_said(story), "the condition to go")
        assert observed(story) == story.status["observedGeneration"]

    played(play)


def test_a_paused_source_can_be_stopped() -> None:
    async def play(story: Story) -> None:
        await story.begin()
        await read(story)
        pause(story)
        await story.until(lambda: is_said(story), "the condition")

        story.patch(suspend=True)

        await story.until(
            lambda: story.server.find(KUBEFLOW_APPLICATION, NAMESPACE, "orders-1") is None,
            "the application to stop",
        )

    played(play)


def test_another_value_pauses_nothing() -> None:
    async def play(story: Story) -> None:
        await story.begin()
        await read(story)
        pause(story, "false")

        story.patch(parallelism=4)

        await story.adopted(parallelism=4, splits=8)
        assert not is_said(story)

    played(play)
