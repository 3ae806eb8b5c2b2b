"""A turn that fails ends neither the task of a source nor its reports, whatever fails then."""

import random
from collections.abc import MutableMapping
from itertools import pairwise
from typing import Any

import pytest
import structlog
from structlog.testing import LogCapture

from balanced_source_operator.kube.port import RefusedError
from balanced_source_operator.resources.kinds import BALANCED_SOURCE, KUBEFLOW_APPLICATION
from balanced_source_operator.runtime.source_runtime import FAREWELL, SourceRuntime
from support.cluster_story import NAMESPACE, Story
from support.played_story import played
from support.virtual_time import clock

REFUSAL = RefusedError("a webhook does not answer", status=500)


@pytest.fixture(autouse=True)
def logs(_silence: None) -> list[MutableMapping[str, Any]]:
    """Return what is logged."""
    structlog.reset_defaults()
    capture = LogCapture()
    structlog.configure(processors=[capture])
    return capture.entries


async def read(story: Story) -> None:
    await story.begin()
    await story.launched()
    story.driver.start()
    await story.adopted(parallelism=2, splits=8)


def runtime_of(story: Story) -> SourceRuntime:
    [(_, runtime, _)] = story.operators[0].supervisor._running.values()
    return runtime


def degraded(story: Story) -> tuple[str, str]:
    found = next(c for c in story.status["conditions"] if c["type"] == "Degraded")
    return found["status"], found["reason"]


async def pass_time(story: Story, seconds: float) -> None:
    due = clock() + seconds
    await story.until(lambda: clock() >= due, "time to pass")


class Broken:
    """Stands in for a method that raises for some time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> None:
        self.is_broken = True
        self.calls: list[float] = []
        self._real, self._name = getattr(owner, name), name
        monkeypatch.setattr(owner, name, self)

    async def __call__(self, *arguments: Any, **named: Any) -> Any:
        self.calls.append(clock())
        if self.is_broken:
            raise ValueError(f"{self._name} is broken")
        return await self._real(*arguments, **named)


def test_pauses_between_turns_that_fail_grow_and_begin_again_after_a_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(random, "uniform", lambda _, most: most)

    async def play(story: Story) -> None:
        await read(story)
        turns = Broken(monkeypatch, runtime_of(story)._coordination, "turn")
        for _ in range(2):
            turns.is_broken = True
            turns.calls.clear()
            story.patch(parallelism=3 if story.status["readers"] == 2 else 2)
            await pass_time(story, 10)
            pauses = [after - before for before, after in pairwise(turns.calls)]
            assert pauses == pytest.approx([0.5, 1.0, 2.0, 4.0]), "as many turns as fit"
            assert degraded(story) == ("True", "InternalError")
            turns.is_broken = False
            await story.until(lambda: degraded(story)[0] == "False", "all to be well")

    played(play)


@pytest.mark.parametrize("failures", [1, 2])
def test_a_failed_turn_is_reported_also_if_the_first_look_at_the_source_fails(
    monkeypatch: pytest.MonkeyPatch, logs: list[MutableMapping[str, Any]], failures: int
) -> None:
    """With another failure in that, the next turn tries it again."""

    async def play(story: Story) -> None:
        await read(story)
        runtime = runtime_of(story)
        turns = Broken(monkeypatch, runtime._coordination, "turn")
        looks = iter([ValueError("a look is broken")] * failures)
        real = runtime._facts

        def facts() -> Any:
            if (error := next(looks, None)) is not None:
                raise error
            return real()

        monkeypatch.setattr(runtime, "_facts", facts)
        story.patch(parallelism=3)
        await story.until(lambda: degraded(story)[0] == "True", "the report")
        assert degraded(story) == ("True", "InternalError")
        assert len(turns.calls) == failures
        turns.is_broken = False
        await story.adopted(parallelism=3, splits=8)
        await story.until(lambda: degraded(story)[0] == "False", "all to be well")

    played(play)

    events = [line["event"] for line in logs]
    assert events.count("no status of the enumerator") == 1
    assert events.count("a failed turn could not be reported") == failures - 1


def test_what_an_operator_has_stored_of_settings_stays_while_the_spec_is_invalid() -> None:
    async def play(story: Story) -> None:
        await read(story)
        await story.until(lambda: story.status.get("settings"), "the healthy settings")
        before = story.status["settings"]
        story.patch(application={"driver": {"memory": "lots"}})
        await story.until(lambda: degraded(story) == ("True", "InvalidSpec"), "the refusal")
        await story.operators.pop().stop()
        story.start_operator(name="operator-2")
        await pass_time(story, 70)

        assert story.status["settings"] == before

    played(play)


def test_an_application_that_cannot_be_stopped_when_its_source_is_gone_is_named(
    logs: list[MutableMapping[str, Any]],
) -> None:
    async def play(story: Story) -> None:
        await read(story)
        bare = {"metadata": {"ownerReferences": None}}
        story.server.edit(KUBEFLOW_APPLICATION, NAMESPACE, "orders-1", bare)
        story.server.deny(REFUSAL, kind=KUBEFLOW_APPLICATION, verbs=("delete",))
        calls, before = story.operators[0].client.calls, clock()
        story.server.remove(BALANCED_SOURCE, NAMESPACE, "orders")
        await story.until(lambda: not story.operators[0].supervisor.sources, "its task to end")

        assert sum(FAREWELL) <= clock() - before < sum(FAREWELL) + 30
        assert calls.count("delete sparkapplications orders-1") == len(FAREWELL)

    played(play)

    lines = [line["event"] for line in logs if "application" in line["event"]]
    assert lines.count("cannot stop the application now") == len(FAREWELL)
    [last] = [line for line in logs if "delete them" in line["event"]]
    assert (last["log_level"], last["applications"]) == ("error", "orders-1")
