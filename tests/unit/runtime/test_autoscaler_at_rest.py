"""An autoscaler whose source is idle needs no turn for heartbeats."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from balanced_source.errors import ConnectorError
from balanced_source_operator.controller.autoscaling.decision import KEEP_MESSAGE
from balanced_source_operator.controller.liveness import ALIVE
from balanced_source_operator.kube.port import RefusedError
from balanced_source_operator.resources.kinds import ROLE_BINDING
from balanced_source_operator.runtime import autoscaler as module
from support import virtual_time
from support.autoscaler_scene import BOUNDS, Scene
from support.cluster_story import NAMESPACE, Story
from support.fake_kubernetes import FakeClient
from support.played_story import played
from support.quiet_story import at_rest, beat
from support.virtual_time import clock


class Watched(Scene):
    """Counts the turns."""

    def __init__(self) -> None:
        super().__init__()
        self.turns = 0

    async def turn(self, *arguments: Any, **keywords: Any) -> str:
        self.turns += 1
        return await super().turn(*arguments, **keywords)

    async def rest(self, heartbeats: int, **keywords: Any) -> None:
        for _ in range(heartbeats):
            await asyncio.sleep(10)
            self.beat()
            if self.needs_turn():
                await self.turn(**keywords)


def test_an_idle_source_with_as_few_readers_as_may_be_needs_no_turn_after_a_minute() -> None:
    async def play() -> None:
        scene = Watched()
        scene.report(lag=0, rate=0)
        await scene.turn()
        await scene.rest(360)
        assert scene.turns <= 3 + KEEP_MESSAGE / 10
        assert scene.reason == "WithinTarget"

    virtual_time.run(play())


@pytest.mark.parametrize(
    ("lag", "of_turn"),
    [
        (0, {"parallelism": 3}),
        (0, {"bounds": {"minReaders": 1, "maxReaders": 8}}),
        (5, {}),
        (None, {}),
        (0, {"is_held": True}),
        (0, {"bounds": None}),
    ],
    ids=["too many readers", "fewer are allowed", "unread", "unknown lag", "paused", "none"],
)
def test_otherwise_each_heartbeat_causes_a_turn(
    lag: int | None, of_turn: Mapping[str, Any]
) -> None:
    async def play() -> None:
        scene = Watched()
        scene.report(lag=lag, rate=0)
        await scene.turn(**of_turn)
        await scene.rest(15, **of_turn)
        assert scene.turns == 16

    virtual_time.run(play())


def test_a_refusal_is_tried_again_at_each_heartbeat() -> None:
    async def play() -> None:
        scene = Watched()
        scene.error = RefusedError("forbidden", status=403)
        scene.report(lag=0, rate=0)
        await scene.rest(15, parallelism=20)
        assert scene.turns == 15

    virtual_time.run(play())


def test_a_connector_that_fails_then_is_left_to_the_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> bool:
        raise ConnectorError("broken")

    async def play() -> None:
        scene = Watched()
        scene.report(lag=0, rate=0)
        await scene.rest(15)
        before = scene.turns
        monkeypatch.setattr(module, "_counts_unread", fail)
        with pytest.raises(ConnectorError):
            await scene.rest(1)
        assert scene.turns == before + 1

    virtual_time.run(play())


def test_the_sentence_is_about_the_time_in_which_nothing_arrives() -> None:
    async def play() -> None:
        scene = Watched()
        await scene.read(100)
        verdict = scene.autoscaler.verdict
        assert verdict is not None
        assert verdict.message.startswith("800 records/s arrive")
        scene.report(lag=0, rate=0)
        await scene.turn()
        await scene.rest(2)
        while True:
            await asyncio.sleep(1)
            scene.beat()
            if not scene.needs_turn():
                break
            await scene.turn()
        verdict = scene.autoscaler.verdict
        assert verdict is not None
        assert verdict.message.startswith("0 records/s arrive")

    virtual_time.run(play())


def autoscaling(story: Story) -> str:
    found = [c for c in story.status["conditions"] if c["type"] == "Autoscaling"]
    return str(found[0]["reason"])


def test_a_heartbeat_within_a_turn_does_not_make_the_autoscaler_begin_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The turn works on the report that was there when it began: by then an older one."""

    async def play(story: Story) -> None:
        await at_rest(story, autoscaling=BOUNDS)
        apply, seen = FakeClient.apply, set[str]()

        async def slow(self: FakeClient, *arguments: Any) -> Any:
            await asyncio.sleep(0.5)
            beat(story)
            await asyncio.sleep(0.5)
            return await apply(self, *arguments)

        monkeypatch.setattr(FakeClient, "apply", slow)
        story.server.remove(ROLE_BINDING, NAMESPACE, "orders-documents")
        begin = clock()

        def is_over() -> bool:
            seen.add(autoscaling(story))
            return clock() - begin > 9

        await story.until(is_over, "the turn")
        assert seen == {"WithinTarget"}

    played(play)


def test_a_lag_that_stays_unknown_is_said_in_the_status() -> None:
    async def play(story: Story) -> None:
        await at_rest(story, autoscaling=BOUNDS)
        begin = clock()
        while clock() - begin < 2 * ALIVE:
            beat(story, lag=None)
            due = clock() + 10
            await story.until(lambda due=due: clock() >= due, "the next one")  # type: ignore[misc]
        assert "lag" not in story.status
        assert autoscaling(story) == "LagUnknown"

    played(play)
