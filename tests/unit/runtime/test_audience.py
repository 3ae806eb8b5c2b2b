"""What the status page sees of a source while the operator serves it."""

from typing import Any

from balanced_source_operator.resources.kinds import BALANCED_SOURCE
from support.cluster_story import NAMESPACE, Story
from support.played_story import played

KEY = (NAMESPACE, "orders")


def told(story: Story) -> dict[str, Any]:
    shown = story.operators[0].board.get(KEY)
    return shown.exhibit.detail(shown.look()) if shown is not None else {}


def test_a_rescale_is_on_the_page_with_its_reason_and_its_adoption() -> None:
    async def play(story: Story) -> None:
        await story.begin()
        await story.launched()
        story.driver.start()
        await story.adopted(parallelism=2, splits=8)
        await story.until(lambda: bool(told(story).get("acknowledged")), "the first adoption")
        first = told(story)
        assert first["timeline"][0]["adoptedAt"] is not None
        assert first["canPlan"]

        story.patch(parallelism=3)
        await story.adopted(parallelism=3, splits=8)
        await story.until(lambda: told(story)["acknowledged"] == told(story)["epoch"], "its status")
        newest = told(story)["timeline"][0]
        assert (newest["readers"], newest["why"]) == (3, "Rescaled from 2 to 3 readers")
        assert newest["epoch"] > first["epoch"]
        assert newest["adoptedAt"] is not None

    played(play)


def test_a_deleted_source_leaves_the_page() -> None:
    async def play(story: Story) -> None:
        await story.begin()
        await story.until(lambda: bool(told(story)), "the source")
        story.server.remove(BALANCED_SOURCE, NAMESPACE, "orders")
        await story.until(lambda: not told(story), "its end")

    played(play)


def test_after_a_restart_the_page_begins_with_the_epoch_in_effect() -> None:
    async def play(story: Story) -> None:
        await story.begin()
        await story.launched()
        story.driver.start()
        await story.adopted(parallelism=2, splits=8)
        await story.until(lambda: bool(told(story).get("acknowledged")), "the first adoption")
        epoch = told(story)["epoch"]
        await story.operators.pop(0).stop()
        story.start_operator()
        await story.until(lambda: bool(told(story).get("timeline")), "the epoch")

        assert [entry["epoch"] for entry in told(story)["timeline"]] == [epoch]
        assert "earlier epochs are not known" in told(story)["timeline"][0]["why"]

    played(play)
