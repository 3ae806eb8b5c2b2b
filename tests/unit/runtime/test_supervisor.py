"""The operator stops after the tasks of its sources have ended."""

import asyncio
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from balanced_source_operator.runtime import supervisor as module
from balanced_source_operator.runtime.supervisor import Supervisor

pytestmark = pytest.mark.asyncio


async def test_stopping_waits_until_all_tasks_have_ended() -> None:
    """The next operator must not work beside a turn that is being cut off."""
    nothing: Any = None
    supervisor, ended = Supervisor(nothing), list[int]()

    async def serve(number: int) -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            for _ in range(5):
                await asyncio.sleep(0)
            ended.append(number)
            if number:
                raise ValueError("a turn that fails at its end")

    for number in range(3):
        task = asyncio.create_task(serve(number))
        supervisor._running["shop", str(number)] = (nothing, nothing, task)
    await asyncio.sleep(0)
    assert supervisor.sources == 3

    await supervisor.stop()

    assert ended == [0, 1, 2]
    assert supervisor.sources == 0


async def test_a_namespace_is_let_go_alone() -> None:
    nothing: Any = None
    supervisor = Supervisor(nothing)
    tasks = {
        key: asyncio.create_task(asyncio.sleep(3600, None))
        for key in (("shop", "a"), ("shop", "b"), ("jobs", "a"))
    }
    for key, task in tasks.items():
        supervisor._running[key] = (nothing, nothing, task)
    await asyncio.sleep(0)

    supervisor.let_go("shop")
    supervisor.let_go("unknown")

    assert supervisor.sources == 1
    await asyncio.wait([tasks["shop", "a"], tasks["shop", "b"]])
    assert not tasks["jobs", "a"].done()
    await supervisor.stop()
    assert tasks["jobs", "a"].cancelled()


async def test_stopping_also_waits_for_what_was_let_go() -> None:
    nothing: Any = None
    supervisor, ended = Supervisor(nothing), list[str]()

    async def serve() -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            for _ in range(5):
                await asyncio.sleep(0)
            ended.append("task")

    supervisor._running["shop", "a"] = (nothing, nothing, asyncio.create_task(serve()))
    await asyncio.sleep(0)
    supervisor.let_go("shop")
    await supervisor.stop()

    assert ended == ["task"]
    assert supervisor._ending == {}


class Numbered:
    """A runtime that tells when it begins and ends; that of a deleted source ends by itself."""

    seen: ClassVar[list[str]] = []

    def __init__(self, _: Any, body: Mapping[str, Any]) -> None:
        self.revision = int(body["metadata"]["resourceVersion"])
        self._is_gone = asyncio.Event()

    def note(self, _kind: Any, event: str, _body: Any) -> None:
        if event == "DELETED":
            self._is_gone.set()

    async def run(self) -> None:
        self.seen.append(f"begin {self.revision}")
        try:
            await self._is_gone.wait()
        finally:
            for _ in range(5):
                await asyncio.sleep(0)
            self.seen.append(f"end {self.revision}")


@pytest.fixture
def numbered(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr(module, "SourceRuntime", Numbered)
    Numbered.seen.clear()
    return Numbered.seen


def body(uid: str, revision: int) -> dict[str, Any]:
    return {
        "metadata": {"namespace": "shop", "name": "a", "uid": uid, "resourceVersion": str(revision)}
    }


def environment(expect: Callable[[Any], None] = lambda _: None) -> Any:
    """What runtimes that do nothing need."""
    return SimpleNamespace(alignments=SimpleNamespace(expect=expect))


async def settled() -> None:
    """Let all tasks run until they wait."""
    for _ in range(20):
        await asyncio.sleep(0)


async def test_a_source_that_comes_back_waits_for_its_former_tasks(numbered: list[str]) -> None:
    """The end of a task forgets metrics and groups of the source, which the next one fills."""
    supervisor = Supervisor(environment())
    for number in (1, 2, 3):
        supervisor.on_source(None, body("u", number))
        if number == 1:
            await asyncio.sleep(0)
        if number != 3:
            supervisor.let_go("shop")
    await settled()

    assert numbered == ["begin 1", "end 1", "begin 3"]
    assert supervisor.sources == 1
    await supervisor.stop()


async def test_a_new_source_of_the_same_name_waits_for_the_tasks_of_the_former_one(
    numbered: list[str],
) -> None:
    supervisor = Supervisor(environment())
    supervisor.on_source("ADDED", body("first", 1))
    await asyncio.sleep(0)

    supervisor.on_source("ADDED", body("second", 2))
    await settled()

    assert numbered == ["begin 1", "end 1", "begin 2"]
    await supervisor.stop()


async def test_nothing_is_kept_of_a_deleted_source(numbered: list[str]) -> None:
    supervisor = Supervisor(environment())
    supervisor.on_source("ADDED", body("first", 1))
    await asyncio.sleep(0)

    supervisor.on_source("DELETED", body("first", 2))
    await settled()

    assert numbered == ["begin 1", "end 1"]
    assert supervisor._running == {}


async def test_alignment_groups_wait_for_a_source_from_the_start(numbered: list[str]) -> None:
    expected: list[str] = []
    supervisor = Supervisor(environment(lambda source: expected.append(source.uid)))
    supervisor.on_source("ADDED", body("u", 1))
    assert not numbered
    await settled()

    assert (expected, numbered) == (["u"], ["begin 1"])
    await supervisor.stop()
