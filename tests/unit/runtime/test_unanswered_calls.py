"""What the operator does while no driver answers, and with answers that it does not wait for."""

import asyncio
from dataclasses import dataclass, replace
from typing import Any

import pytest

from balanced_source.api import AsyncCall, CallCodec
from balanced_source.documents import calls as call_documents
from balanced_source.documents.calls import CallAnswer, CallError
from balanced_source.documents.report import HostReport
from balanced_source.errors import RefusedDiscoveryError, TransientDiscoveryError
from balanced_source_operator.runtime.driver_calls import PATIENCE, CallsThroughDriver
from support import virtual_time


@dataclass(frozen=True, slots=True)
class ListShelf(AsyncCall):
    """Lists the books of a shelf."""

    scope: str


class ShelfCodec(CallCodec):
    def call_to_json(self, call: AsyncCall) -> Any:
        assert isinstance(call, ListShelf)
        return call.scope

    def call_from_json(self, data: Any) -> ListShelf:
        return ListShelf(str(data))

    def result_to_json(self, call: AsyncCall, result: Any) -> Any:
        return result

    def result_from_json(self, call: AsyncCall, data: Any) -> Any:
        return data


class Scene:
    """The calls of one coordinator.

    Attributes:
        changes: how often what is wanted has changed.
    """

    def __init__(self) -> None:
        self.calls = CallsThroughDriver(ShelfCodec(), self._note)
        self.changes = 0

    def _note(self) -> None:
        self.changes += 1

    async def ask(self, scope: str = "shelf") -> "asyncio.Task[Any]":
        task = asyncio.create_task(self.calls.ask(ListShelf(scope)))
        await asyncio.sleep(0)
        return task

    def page(self, number: int, books: list[str], *, host: str = "0") -> None:
        """A host sends a page of its list to the first call."""
        digest, pages = call_documents.cut(books)
        self.take(
            CallAnswer(id="", digest=digest, page=number, pages=len(pages), data=pages[number]),
            host=host,
        )

    def take(self, *answers: CallAnswer, host: str = "0") -> None:
        wanted = self.calls.wanted[0].id
        named = tuple(replace(answer, id=wanted) for answer in answers)
        self.calls.take(HostReport(host=host, incarnation=1, answers=named))


def failure(message: str, *, is_refused: bool = False) -> CallAnswer:
    error = CallError(message=message, reason="Locked", scope="shelf", is_refused=is_refused)
    return CallAnswer(id="", error=error)


def test_calls_that_no_driver_answers_are_a_problem_after_a_while() -> None:
    async def play() -> None:
        scene = Scene()
        tasks = [await scene.ask("shelf b"), await scene.ask("shelf a")]
        await asyncio.sleep(PATIENCE - 1)
        tasks.append(await scene.ask("shelf c"))
        assert scene.calls.problem_of(has_driver=True) is None

        await asyncio.sleep(1)
        problem = scene.calls.problem_of(has_driver=True)
        assert problem is not None
        assert problem.message.startswith(
            "No driver has answered 2 calls about shelf a, shelf b within 120 s,"
        )
        for task in tasks:
            task.cancel()

    virtual_time.run(play())


def test_no_answer_is_expected_while_no_driver_runs() -> None:
    """Such as of a suspended source, or of a query that has ended: a new one gets its time."""

    async def play() -> None:
        scene = Scene()
        task = await scene.ask()
        await asyncio.sleep(2 * PATIENCE)
        assert scene.calls.problem_of(has_driver=False) is None
        await asyncio.sleep(PATIENCE - 1)
        assert scene.calls.problem_of(has_driver=True) is None
        await asyncio.sleep(1)
        assert scene.calls.problem_of(has_driver=True) is not None
        task.cancel()

    virtual_time.run(play())


def test_what_is_wanted_changes_with_calls_and_pages_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_documents, "PAGE", 8)

    async def play() -> None:
        scene = Scene()
        task = await scene.ask()
        assert scene.changes == 1
        scene.page(0, ["a", "b", "c"])
        assert scene.changes == 2, "the next page is wanted"
        scene.page(0, ["a", "b", "c"])
        scene.calls.take(HostReport(incarnation=1))
        assert scene.changes == 2
        task.cancel()

    virtual_time.run(play())


def test_the_first_answer_counts() -> None:
    async def play() -> None:
        scene = Scene()
        task = await scene.ask()
        scene.take(failure("the first", is_refused=True), failure("the second"))

        with pytest.raises(RefusedDiscoveryError, match="the first"):
            await task
        again = await scene.ask()
        scene.take(failure("it is locked"))
        with pytest.raises(TransientDiscoveryError, match="it is locked"):
            await again

    virtual_time.run(play())


def test_another_host_takes_over_a_list_whose_pages_have_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(call_documents, "PAGE", 8)
    books = {"0": ["a", "b", "c"], "1": ["d", "e", "f"]}

    async def play() -> None:
        scene = Scene()
        task = await scene.ask()
        scene.page(0, books["0"])
        await asyncio.sleep(PATIENCE - 1)
        scene.page(0, books["1"], host="1")
        scene.page(1, books["0"])
        assert scene.calls.wanted[0].page == 2, "the pages of the first host still come"

        await asyncio.sleep(PATIENCE)
        for number in range(len(call_documents.cut(books["1"])[1])):
            scene.page(number, books["1"], host="1")
        assert await task == books["1"]

    virtual_time.run(play())
