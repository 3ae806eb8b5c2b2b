"""Which refusals by the API server are problems, and for how long."""

import asyncio
import contextlib
from typing import Any

import pytest

from balanced_source.api import ProblemBoard
from balanced_source_operator.kube.port import RefusedError
from balanced_source_operator.resources.kinds import (
    BALANCED_SOURCE,
    CONFIG_MAP,
    EVENT,
    KUBEFLOW_APPLICATION,
    SECRET,
)
from balanced_source_operator.runtime.refusals import KEEP_MESSAGE, PATIENCE, ReportingApi
from support import virtual_time
from support.builders import identity, source_body
from support.fake_kubernetes import FakeKubernetes


class Scene:
    """The API as a source sees it, and the board."""

    def __init__(self) -> None:
        self.server = FakeKubernetes(clock=virtual_time.clock)
        self.server.add(BALANCED_SOURCE, source_body())
        self.board = ProblemBoard()
        self.api = ReportingApi(self.server.client(), self.board)

    def refuse(self, words: str = "denied", *, status: int = 403, **where: Any) -> Any:
        wanted = {"kind": CONFIG_MAP, "verbs": ("get",), **where}
        return self.server.deny(RefusedError(words, status=status), **wanted)

    async def get(self, name: str = "orders-enumerator", kind: Any = CONFIG_MAP) -> list[str]:
        """Ask for an object; return what is on the board then."""
        with contextlib.suppress(RefusedError):
            await self.api.get(kind, "default", name)
        return self.told

    async def create(self, kind: Any, name: str) -> list[str]:
        with contextlib.suppress(RefusedError):
            await self.api.create(kind, {"metadata": identity().metadata(name)})
        return self.told

    @property
    def told(self) -> list[str]:
        return [problem.message for problem in self.board]


def test_a_refusal_is_a_problem_until_the_call_succeeds() -> None:
    async def play() -> None:
        scene = Scene()
        allow = scene.refuse()
        (told,) = await scene.get()
        assert "get ConfigMap orders-enumerator" in told
        allow()
        assert await scene.get("orders-assignment") == [told], "that is another object"
        assert await scene.get() == []

    virtual_time.run(play())


@pytest.mark.parametrize("status", [429, 500, 503])
def test_an_answer_that_may_pass_is_a_problem_if_it_lasts(status: int) -> None:
    async def play() -> None:
        scene = Scene()
        allow = scene.refuse(status=status)
        assert await scene.get() == []
        await asyncio.sleep(PATIENCE - 1)
        assert await scene.get() == []
        await asyncio.sleep(1)
        assert len(await scene.get()) == 1
        allow()
        await scene.get()

        scene.refuse(status=status)
        assert await scene.get() == [], "the time begins again"

    virtual_time.run(play())


@pytest.mark.parametrize("status", [400, 499])
def test_an_answer_that_will_not_change_is_a_problem_at_once(status: int) -> None:
    async def play() -> None:
        scene = Scene()
        scene.refuse(status=status)
        assert len(await scene.get()) == 1

    virtual_time.run(play())


def test_other_words_replace_the_message_after_a_while_only() -> None:
    async def play() -> None:
        scene = Scene()
        scene.refuse("denied, request 1")
        first = await scene.get()
        scene.refuse("denied, request 2")
        await asyncio.sleep(KEEP_MESSAGE - 1)
        assert await scene.get() == first
        await asyncio.sleep(1)
        (second,) = await scene.get()
        assert "request 2" in second
        scene.refuse("exceeded quota: pods")
        (third,) = await scene.get()
        assert "exceeded quota" in third, "another reason is told at once"

    virtual_time.run(play())


def test_a_secret_that_cannot_be_read_is_reported_by_discovery() -> None:
    async def play() -> None:
        scene = Scene()
        scene.refuse(kind=SECRET)
        assert await scene.get("kafka", SECRET) == []

    virtual_time.run(play())


@pytest.mark.parametrize("kind", [EVENT, KUBEFLOW_APPLICATION])
def test_the_next_object_with_a_generated_name_shows_whether_a_refusal_lasts(kind: Any) -> None:
    async def play() -> None:
        scene = Scene()
        allow = scene.refuse(kind=kind, verbs=("create",))
        assert len(await scene.create(kind, "orders-1")) == 1
        assert len(await scene.create(kind, "orders-2")) == 1, "it is the same problem"
        (problem,) = scene.board
        assert problem.scope == kind.kind
        allow()
        assert await scene.create(kind, "orders-3") == []

    virtual_time.run(play())


def test_a_turn_that_succeeds_ends_refusals_of_calls_that_are_not_made_any_more() -> None:
    async def play() -> None:
        scene = Scene()
        scene.refuse(kind=EVENT, verbs=("create",))
        scene.refuse(kind=BALANCED_SOURCE, verbs=("patch status",))
        scene.refuse()
        await scene.create(EVENT, "orders-1")
        await scene.get()
        with pytest.raises(RefusedError):
            await scene.api.patch_status(BALANCED_SOURCE, "default", "orders", {})
        assert {problem.scope for problem in scene.board} == {
            "Event",
            "BalancedSource/orders",
            "ConfigMap/orders-enumerator",
        }

        scene.api.turn_succeeded()
        kept = {problem.scope for problem in scene.board}
        assert kept == {"Event", "BalancedSource/orders"}, "these are written after a turn"

    virtual_time.run(play())


def test_calls_that_are_not_refused_do_what_the_api_does() -> None:
    async def play() -> None:
        scene = Scene()
        wanted = {"metadata": identity().metadata("orders-a")}
        made = await scene.api.create(CONFIG_MAP, wanted)
        assert made == await scene.api.get(CONFIG_MAP, "default", "orders-a")
        assert await scene.api.list(CONFIG_MAP, "default", selector="") == [made]
        replaced = await scene.api.replace(CONFIG_MAP, {**made, "data": {"a": "1"}})
        assert replaced["data"] == {"a": "1"}
        applied = await scene.api.apply(CONFIG_MAP, {**wanted, "data": {"b": "2"}})
        assert applied["data"] == {"a": "1", "b": "2"}
        scene.server.objections[CONFIG_MAP] = "no"
        assert await scene.api.objection(CONFIG_MAP, made) == "no"
        await scene.api.delete(CONFIG_MAP, "default", "orders-a", uid=made["metadata"]["uid"])
        assert await scene.api.get(CONFIG_MAP, "default", "orders-a") is None

        await scene.api.scale(BALANCED_SOURCE, "default", "orders", before=2, after=3)
        assert scene.server.find(BALANCED_SOURCE, "default", "orders")["spec"]["parallelism"] == 3
        assert scene.told == []

    virtual_time.run(play())
