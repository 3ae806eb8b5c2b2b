"""An autoscaler whose source is idle needs no turn for heartbeats, and loses nothing by that."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from balanced_source.errors import ConnectorError
from balanced_source_operator.controller.autoscaling import Verdict
from balanced_source_operator.controller.autoscaling.decision import KEEP_MESSAGE
from balanced_source_operator.kube.port import RefusedError
from balanced_source_operator.runtime import autoscaler as module
from support import virtual_time
from support.autoscaler_scene import Scene
from support.builders import spec_json

Step = tuple[int, int, int, int]
"""Heartbeats; then seconds with reports of that rate and lag."""


class Watched(Scene):
    """Counts the turns; with `is_eager`, each heartbeat causes one."""

    def __init__(self, *, is_eager: bool = False) -> None:
        super().__init__()
        self.is_eager = is_eager
        self.turns = 0

    async def turn(self, *arguments: Any, **keywords: Any) -> str:
        self.turns += 1
        return await super().turn(*arguments, **keywords)

    async def rest(self, heartbeats: int, **keywords: Any) -> None:
        for _ in range(heartbeats):
            await asyncio.sleep(10)
            self.beat()
            if self.is_eager or self.needs_turn():
                await self.turn(**keywords)

    async def seen(self, steps: list[Step], *, trigger: str) -> list[tuple[Any, ...]]:
        """Return the decision after each report that says something new."""
        found: list[tuple[Any, ...]] = []
        application = spec_json()["application"]
        pipeline = {**application["pipeline"], "trigger": {"processingTime": trigger}}
        asked = {"application": {**application, "pipeline": pipeline}}
        self.report(lag=0, rate=0)
        await self.turn(**asked)
        for heartbeats, seconds, rate, lag in steps:
            await self.rest(heartbeats, **asked)
            for _ in range(seconds):
                await asyncio.sleep(2)
                self.report(lag=lag, rate=rate)
                await self.turn(**asked)
                found.append(said(self.autoscaler.verdict))
            # What was read is read, and there is no more of it.
            await asyncio.sleep(2)
            self.report(lag=0, rate=rate)
            await self.turn(**asked)
        return found


def said(verdict: Verdict | None) -> tuple[Any, ...]:
    assert verdict is not None
    return verdict.readers, verdict.reason, verdict.arrival, verdict.capacity, verdict.utilization


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


@settings(max_examples=50)
@given(
    steps=st.lists(
        st.tuples(
            st.integers(0, 60), st.integers(1, 20), st.integers(0, 300), st.integers(0, 20_000)
        ),
        min_size=1,
        max_size=4,
    ),
    trigger=st.sampled_from(["500ms", "30s", "3m"]),
)
def test_a_load_after_rest_is_measured_as_if_each_heartbeat_had_caused_a_turn(
    steps: list[Step], trigger: str
) -> None:
    lazy, eager = Watched(), Watched(is_eager=True)
    found = [virtual_time.run(scene.seen(steps, trigger=trigger)) for scene in (lazy, eager)]
    assert found[0] == found[1]
    assert lazy.scaled == eager.scaled
    assert lazy.posted == eager.posted
    assert lazy.turns <= eager.turns
