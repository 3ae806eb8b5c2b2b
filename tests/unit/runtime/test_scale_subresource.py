"""What autoscalers read of a source: its selector is there from the first status on."""

from balanced_source_operator.resources.kinds import POD
from balanced_source_operator.resources.reader_pods import NO_PODS
from support.cluster_story import NAMESPACE, Story
from support.played_story import played


def test_the_selector_exists_before_the_first_pod() -> None:
    async def play(story: Story) -> None:
        await story.begin()
        await story.until(lambda: story.status, "the first status")
        assert story.status["selector"] == "balancedsource.io/name=orders,spark-role=executor"
        assert story.server.select(POD, NAMESPACE) == []

    played(play)


def test_a_spec_that_was_never_valid_has_a_selector_without_pods() -> None:
    async def play(story: Story) -> None:
        await story.begin(
            source={"kafka": {"clusters": [], "subscription": {"topicPattern": "orders-("}}}
        )
        await story.until(lambda: story.status, "the first status")
        assert story.status["selector"] == f"balancedsource.io/name=orders,{NO_PODS}"

    played(play)


def test_executors_with_several_slots_are_not_counted_as_readers() -> None:
    async def play(story: Story) -> None:
        application = {"image": "spark:4", "sparkVersion": "4.2.0", "executor": {"cores": 4}}
        await story.begin(application={**application, "pipeline": {"checkpointLocation": "/data"}})
        await story.launched()
        story.driver.start()
        await story.adopted(parallelism=2, splits=8)
        assert story.status["selector"].endswith(NO_PODS)
        assert story.status["readers"] == 2

    played(play)
