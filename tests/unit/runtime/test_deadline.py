"""Waiting is over after an unbroken time."""

from balanced_source_operator.runtime.deadline import Deadline
from support.cluster_story import Story
from support.played_story import played


def test_only_an_unbroken_time_counts() -> None:
    now = 0.0
    deadline = Deadline(300, clock=lambda: now)
    assert not deadline.is_over()

    deadline.note(waits=True)
    now = 299.0
    deadline.note(waits=True)
    assert not deadline.is_over()
    now = 300.0
    assert deadline.is_over()

    deadline.note(waits=False)
    assert not deadline.is_over()
    deadline.note(waits=True)
    now = 599.0
    assert not deadline.is_over()


def test_a_driver_whose_readers_do_not_register_is_said_to_be_late() -> None:
    """Its application runs, so nothing else would tell."""

    async def play(story: Story) -> None:
        await story.begin()
        await story.launched()

        def degraded() -> str:
            return next(
                (c["reason"] for c in story.status["conditions"] if c["type"] == "Degraded"), ""
            )

        await story.until(lambda: degraded() == "ReadersMissing", "it to be said")

    played(play)
