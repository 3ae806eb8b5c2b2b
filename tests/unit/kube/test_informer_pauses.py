"""Watches that do not last are opened ever more rarely, whatever ends them."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import pytest
from structlog.testing import capture_logs

from balanced_source_operator.kube import informer as module
from balanced_source_operator.kube.informer import (
    HELD,
    LIST_ADDED,
    RETRY_FIRST,
    RETRY_MAX,
    Informer,
)
from balanced_source_operator.kube.port import KubernetesError, RefusedError
from balanced_source_operator.kube.stream import ExpiredError, SilentWatchError, WatchEvent
from balanced_source_operator.resources.kinds import CONFIG_MAP, NAME_LABEL, ResourceKind
from support import virtual_time
from support.watched_server import Server

ITEM = {"kind": "ConfigMap", "metadata": {"name": "a", "namespace": "b", "resourceVersion": "5"}}


@pytest.fixture(autouse=True)
def _clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "time", virtual_time.time_module())


@contextmanager
def following(server: Server) -> Iterator[Informer]:
    """An informer of all namespaces that runs meanwhile."""
    informer = Informer(server, CONFIG_MAP, "", selector=NAME_LABEL, tell=lambda *_: None)
    task = asyncio.create_task(informer.run())
    try:
        yield informer
    finally:
        task.cancel()


def play(story: Callable[[], Coroutine[Any, Any, None]]) -> None:
    virtual_time.run(story())


MANY = 500
"""Watches after which an informer is ended."""


class Failing(Server):
    """Every watch lasts `lasts` seconds and then ends as `end` says: None for in order."""

    def __init__(self, end: Exception | None, *, lasts: float = 0.0) -> None:
        super().__init__(ITEM)
        self.end, self.lasts = end, lasts
        self.watches: list[float] = []

    async def watch(
        self, kind: ResourceKind, namespace: str, *, selector: str, revision: str
    ) -> AsyncGenerator[WatchEvent, None]:
        self.watches.append(virtual_time.clock())
        if len(self.watches) > MANY:
            # Else a loop without a pause would hang the test instead of failing it.
            raise asyncio.CancelledError
        await asyncio.sleep(self.lasts)
        if self.end is not None:
            raise self.end.with_traceback(None)
        return
        yield

    @property
    def gaps(self) -> list[float]:
        """Seconds between a watch's end and the next one."""
        return [after - before - self.lasts for before, after in pairwise(self.watches)]


FAULTS = [
    None,
    ExpiredError("410"),
    KubernetesError("broken"),
    RefusedError("forbidden", status=403),
    SilentWatchError("no byte"),
    RuntimeError("a mistake of ours"),
]


@pytest.mark.parametrize("end", FAULTS, ids=repr)
def test_watches_that_do_not_hold_are_opened_ever_more_rarely(end: Exception | None) -> None:
    """Whatever ends them, and although each list succeeds."""

    async def story() -> None:
        server = Failing(end)
        with following(server):
            await asyncio.sleep(300)
        assert 15 <= len(server.watches) <= 45
        assert server.lists <= len(server.watches)
        assert all(RETRY_FIRST / 2 <= gap <= RETRY_MAX for gap in server.gaps)
        assert all(gap >= RETRY_MAX / 2 for gap in server.gaps[5:]), "the back-off grows"

    play(story)


@pytest.mark.parametrize("end", FAULTS, ids=repr)
def test_after_a_watch_that_has_held_the_back_off_begins_again(end: Exception | None) -> None:
    async def story() -> None:
        server = Failing(end)
        with following(server):
            await asyncio.sleep(100)
            server.lasts = HELD
            server.watches.clear()
            await asyncio.sleep(200)
        assert all(gap <= RETRY_FIRST for gap in server.gaps[1:])
        assert len(server.watches) >= 15

    play(story)


@pytest.mark.parametrize("end", [None, ExpiredError("410"), SilentWatchError("no byte")])
def test_a_watch_that_has_held_and_ends_in_time_is_followed_at_once(
    end: Exception | None,
) -> None:
    async def story() -> None:
        server = Failing(end, lasts=HELD)
        with following(server) as informer:
            await asyncio.sleep(10 * HELD + 1)
            assert informer.is_live
        assert set(server.gaps) == {0.0}
        assert len(server.watches) == 11

    play(story)


def test_a_long_list_does_not_count_as_a_watch_that_has_held() -> None:
    """Of thousands of objects, and its revision is too old when it is there."""

    async def story() -> None:
        server = Failing(ExpiredError("410"))
        server.between_pages = lambda: asyncio.sleep(2 * HELD)  # type: ignore[method-assign]
        with following(server):
            await asyncio.sleep(400)
        assert all(gap >= 2 * HELD + RETRY_MAX / 2 for gap in server.gaps[5:])

    play(story)


def test_a_list_that_is_due_waits_for_no_pause() -> None:
    """A namespace was added: the watch is left on purpose."""

    async def story() -> None:
        server = Server(ITEM)
        with following(server) as informer:
            server.news.put_nowait(None)  # opened again in a moment
            await asyncio.sleep(RETRY_FIRST)
            informer.add("other")
            await asyncio.sleep(LIST_ADDED - HELD / 2)
            server.news.put_nowait(None)
            await asyncio.sleep(HELD / 2)
            server.news.put_nowait(WatchEvent("BOOKMARK", {"metadata": {"resourceVersion": "20"}}))
            await asyncio.sleep(0.001)
            assert server.lists == 2

    play(story)


def test_watches_that_end_at_once_are_logged() -> None:
    async def story() -> None:
        with capture_logs() as logs, following(Failing(None)):
            await asyncio.sleep(60)
        assert 3 <= len(logs) <= 10
        assert {(entry["log_level"], entry["kind"]) for entry in logs} == {
            ("warning", "configmaps")
        }

    play(story)


def test_until_an_expired_revision_is_listed_nothing_is_known_for_certain() -> None:
    async def story() -> None:
        server = Failing(ExpiredError("410"))
        with following(server) as informer:
            await asyncio.sleep(RETRY_FIRST / 4)
            assert (server.lists, informer.is_live) == (1, False)

    play(story)
