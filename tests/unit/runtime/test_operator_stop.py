"""The emergency stop: suspend, deletion and parallelism take effect whatever else is wrong."""

import asyncio
from typing import Any

import pytest

from balanced_source_operator.kube.port import RefusedError
from balanced_source_operator.resources.kinds import (
    BALANCED_SOURCE,
    CONFIG_MAP,
    KUBEFLOW_APPLICATION,
    ROLE,
)
from support.cluster_story import NAMESPACE, Story
from support.played_story import played
from support.virtual_time import clock

INVALID = {"source": {"kafka": {"subscription": {"topics": None, "topicPattern": "orders-("}}}}


async def read(story: Story, application: str = "orders-1") -> None:
    await story.launched(application)
    story.driver.start()
    await story.adopted(parallelism=2, splits=8)


def condition(story: Story, kind: str) -> tuple[str, str]:
    found = next(
        (c for c in story.status.get("conditions", []) if c["type"] == kind),
        {"status": "", "reason": ""},
    )
    return found["status"], found["reason"]


def application(story: Story) -> Any:
    return story.server.find(KUBEFLOW_APPLICATION, NAMESPACE, "orders-1")


async def restarted(story: Story) -> None:
    for operator in list(story.operators):
        await operator.stop()
        story.operators.remove(operator)
    story.start_operator(name="operator-2")


@pytest.mark.parametrize("is_restarted", [False, True], ids=["in memory", "after a restart"])
def test_suspend_stops_a_source_whose_spec_is_invalid(is_restarted: bool) -> None:
    async def play(story: Story) -> None:
        await story.begin()
        await read(story)
        story.patch(**INVALID)
        await story.until(
            lambda: condition(story, "Degraded") == ("True", "InvalidSpec"), "the refusal"
        )
        if is_restarted:
            await restarted(story)

        story.patch(suspend=True)

        await story.until(lambda: application(story) is None, "the application to stop")
        await story.until(
            lambda: condition(story, "Ready") == ("False", "Suspended"), "a condition says so"
        )
        assert condition(story, "Degraded") == ("True", "InvalidSpec")
        assert story.status["application"]["state"] == "Paused"

        story.patch(
            suspend=False,
            source={"kafka": {"subscription": {"topics": ["orders"], "topicPattern": None}}},
        )
        await read(story, "orders-2" if len(story.applications) > 1 else "orders-1")

    played(play)


@pytest.mark.parametrize(
    "changes", [{"source": None}, {"application": {"image": 7}}, {"parallelism": "many"}]
)
def test_suspend_stops_a_source_whatever_is_wrong_with_its_spec(changes: dict[str, Any]) -> None:
    async def play(story: Story) -> None:
        await story.begin()
        await read(story)

        story.patch(**changes, suspend=True)

        await story.until(lambda: application(story) is None, "the application to stop")

    played(play)


@pytest.mark.parametrize("is_restarted", [False, True], ids=["in memory", "after a restart"])
def test_parallelism_takes_effect_while_the_spec_is_invalid(is_restarted: bool) -> None:
    async def play(story: Story) -> None:
        await story.begin()
        await read(story)
        story.patch(**INVALID)
        await story.until(
            lambda: condition(story, "Degraded") == ("True", "InvalidSpec"), "the refusal"
        )
        if is_restarted:
            await restarted(story)

        story.patch(parallelism=4)

        await story.adopted(parallelism=4, splits=8)
        assert condition(story, "Degraded") == ("True", "InvalidSpec")

    played(play)


def test_nothing_is_started_from_a_spec_that_a_restarted_operator_remembers() -> None:
    async def play(story: Story) -> None:
        await story.begin()
        await read(story)
        story.patch(**INVALID)
        await story.until(
            lambda: condition(story, "Degraded") == ("True", "InvalidSpec"), "the refusal"
        )
        await restarted(story)
        story.patch(parallelism=4)
        await story.adopted(parallelism=4, splits=8)

        story.server.remove(KUBEFLOW_APPLICATION, NAMESPACE, "orders-1")
        removed = clock()
        await story.until(lambda: clock() - removed > 60, "the operator to do nothing")

        assert application(story) is None
        assert story.applications == ["orders-1"]
        story.patch(
            source={"kafka": {"subscription": {"topics": ["orders"], "topicPattern": None}}}
        )
        await story.until(
            lambda: application(story) is not None, "the application of the valid spec"
        )

    played(play)


@pytest.mark.parametrize("text", ["{", '{"parallelism":2}', '{"parallelism":0,"source":{}}'])
def test_a_remembered_spec_that_is_not_valid_is_ignored_in_words(text: str) -> None:
    async def play(story: Story) -> None:
        await story.begin()
        await read(story)
        story.patch(**INVALID)
        await story.until(
            lambda: condition(story, "Degraded") == ("True", "InvalidSpec"), "the refusal"
        )
        for operator in list(story.operators):
            await operator.stop()
            story.operators.remove(operator)
        story.server.edit(BALANCED_SOURCE, NAMESPACE, "orders", {"status": {"lastValidSpec": text}})
        story.start_operator(name="operator-2")

        story.patch(parallelism=4)
        patched = clock()
        await story.until(lambda: clock() - patched > 60, "the operator to do nothing")

        await story.adopted(parallelism=2, splits=8)
        assert condition(story, "Degraded") == ("True", "InvalidSpec")

    played(play)


def test_a_parallelism_that_is_invalid_changes_nothing() -> None:
    async def play(story: Story) -> None:
        await story.begin()
        await read(story)

        story.patch(parallelism=0)

        await story.until(
            lambda: condition(story, "Degraded") == ("True", "InvalidSpec"), "the refusal"
        )
        await story.adopted(parallelism=2, splits=8)

    played(play)


@pytest.mark.parametrize("kind", [CONFIG_MAP, ROLE])
def test_suspend_works_while_the_api_server_refuses_everything_else(kind: Any) -> None:
    async def play(story: Story) -> None:
        await story.begin()
        await read(story)
        story.server.deny(
            RefusedError("exceeded quota", status=403),
            kind=kind,
            verbs=("create", "replace", "apply"),
        )
        story.server.remove(
            kind, NAMESPACE, "orders-enumerator" if kind == CONFIG_MAP else "orders-documents"
        )
        started = clock()
        await story.until(lambda: clock() - started > 120, "the operator to back off")

        story.patch(suspend=True)
        asked = clock()

        await story.until(lambda: application(story) is None, "the application to stop")
        assert clock() - asked < 2, "a change of the spec ends the back-off"

    played(play)


def test_a_source_with_an_invalid_spec_can_be_deleted() -> None:
    async def play(story: Story) -> None:
        await story.begin()
        await read(story)
        story.patch(**INVALID)
        await story.until(
            lambda: condition(story, "Degraded") == ("True", "InvalidSpec"), "the refusal"
        )

        story.server.remove(BALANCED_SOURCE, NAMESPACE, "orders")

        await story.until(lambda: story.children() == [], "nothing is left behind")
        await story.until(
            lambda: not any(o.supervisor.sources for o in story.operators),
            "the source's task ended",
        )

    played(play)


@pytest.mark.parametrize("steps", range(8))
def test_an_operator_that_is_stopped_during_an_event_ends(steps: int) -> None:
    """`asyncio.wait_for` lost the cancellation when both came in the same step of the loop."""

    async def play(story: Story) -> None:
        await story.begin()
        await read(story)
        operator = story.operators.pop()
        story.patch(parallelism=3)
        for _ in range(steps):
            await asyncio.sleep(0)
        async with asyncio.timeout(60):
            await operator.stop()

    played(play)
