"""Two releases whose namespaces overlap: both say so, and neither floods the API server."""

from balanced_source_operator.resources.kinds import BALANCED_SOURCE
from balanced_source_operator.runtime.status_writer import RIVAL_FORGET
from support.cluster_story import NAMESPACE, Story
from support.played_story import played
from support.virtual_time import clock


def degraded(story: Story) -> tuple[str, str, str]:
    found = next((c for c in story.status.get("conditions", []) if c["type"] == "Degraded"), {})
    return found.get("status", ""), found.get("reason", ""), found.get("message", "")


async def passed(story: Story, seconds: float) -> None:
    begin = clock()
    await story.until(lambda: clock() - begin >= seconds, "time to pass")


def writes(story: Story) -> int:
    return sum(
        call.startswith("patch status")
        for operator in story.operators
        for call in operator.client.calls
    )


def test_both_are_named_and_the_problem_ends_with_one_of_them() -> None:
    async def play(story: Story) -> None:
        await story.begin(operators=0)
        story.start_operator(name="pod-a", instance="blue/operator")
        await story.until(
            lambda: story.status.get("servedBy") == "blue/operator", "the first status"
        )
        rival = story.start_operator(name="pod-b", instance="green/operator")

        await story.until(lambda: degraded(story)[:2] == ("True", "StateConflict"), "the conflict")
        assert {"blue/operator", "green/operator"} <= set(
            degraded(story)[2].replace(".", " ").split()
        )
        assert "watchNamespaces" in degraded(story)[2]
        assert "StateConflict" in story.events
        before = writes(story)
        await passed(story, 120)
        assert writes(story) - before <= 6, "two a minute at most, from each"

        await rival.stop()
        story.operators.remove(rival)
        await passed(story, RIVAL_FORGET)
        await story.until(lambda: degraded(story)[1] != "StateConflict", "the end of the conflict")
        assert story.status["servedBy"] == "blue/operator"

    played(play)


def test_a_successor_with_another_name_is_not_a_rival() -> None:
    async def play(story: Story) -> None:
        await story.begin(operators=0)
        first = story.start_operator(name="pod-a", instance="blue/operator")
        await story.until(
            lambda: story.status.get("servedBy") == "blue/operator", "the first status"
        )
        await first.stop()
        story.operators.remove(first)

        story.start_operator(name="pod-b", instance="green/operator")

        await story.until(lambda: story.status.get("servedBy") == "green/operator", "its successor")
        await passed(story, 60)
        assert degraded(story)[0] == "False"
        assert "StateConflict" not in story.events

    played(play)


def test_a_status_that_a_person_edits_is_not_a_rival() -> None:
    async def play(story: Story) -> None:
        await story.begin(operators=0)
        story.start_operator(name="pod-a", instance="blue/operator")
        await story.until(
            lambda: story.status.get("servedBy") == "blue/operator", "the first status"
        )
        story.server.edit(BALANCED_SOURCE, NAMESPACE, "orders", {"status": {"epoch": 99}})

        await story.until(lambda: story.status.get("epoch") != 99, "the repair")
        assert "StateConflict" not in story.events

    played(play)


def test_an_operator_without_a_name_does_not_write_in_turns_with_another_one() -> None:
    """It knows no rival: to it, what the other one writes is an edit."""

    async def play(story: Story) -> None:
        await story.begin()
        await story.until(lambda: story.status, "the first status")
        story.start_operator(name="pod-b", instance="blue/operator")
        await passed(story, 60)
        before = writes(story)
        await passed(story, 60)
        assert writes(story) - before <= 14, "a repair every ten seconds, from each"

    played(play)
