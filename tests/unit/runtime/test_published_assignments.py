"""Published assignments are counted: each new one once."""

from support.cluster_story import Story
from support.played_story import played


def test_a_rescale_is_one_more_published_assignment() -> None:
    async def play(story: Story) -> None:
        await story.begin()
        await story.launched("orders-1")
        story.driver.start()
        await story.adopted(parallelism=2, splits=8)
        before = story.sample("assignments_published_total")
        assert before is not None
        assert before >= 1

        story.patch(parallelism=3)
        await story.adopted(parallelism=3, splits=8)
        assert story.sample("assignments_published_total") == before + 1

    played(play)
