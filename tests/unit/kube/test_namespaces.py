"""Which namespaces are served follows their labels, and what is not known changes nothing."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from structlog.testing import capture_logs

from balanced_source_operator.kube import informer as module
from balanced_source_operator.kube.namespaces import ServedNamespaces
from balanced_source_operator.kube.port import KubernetesError, RefusedError
from balanced_source_operator.kube.stream import ExpiredError, ListPage, WatchEvent
from balanced_source_operator.kube.watches import FIRST_LIST, Watches
from balanced_source_operator.resources.kinds import NAMESPACE, ResourceKind
from support import virtual_time
from support.watched_server import Server

SELECTOR = "balancedsource.io/shard=a"


def namespace(name: str, revision: int) -> dict[str, Any]:
    return {"kind": "Namespace", "metadata": {"name": name, "resourceVersion": str(revision)}}


class Scene:
    """Served namespaces that are followed, and what was told of them."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.changes: list[tuple[str, bool]] = []
        self.served = ServedNamespaces(server, SELECTOR, self._note)

    def _note(self, name: str, is_served: bool) -> None:
        assert (name in self.served) == is_served
        self.changes.append((name, is_served))

    async def hears(self, *news: WatchEvent | Exception | None) -> None:
        for one in news:
            self.server.news.put_nowait(one)
        await asyncio.sleep(20)


@pytest.fixture(autouse=True)
def _clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "time", virtual_time.time_module())


@contextmanager
def running(scene: Scene) -> Iterator[Scene]:
    task = asyncio.create_task(scene.served.informer.run())
    try:
        yield scene
    finally:
        task.cancel()


def play(story: Callable[[], Any]) -> None:
    virtual_time.run(story())


def test_a_namespace_is_served_from_its_label_on_until_it_loses_it() -> None:
    async def story() -> None:
        with running(Scene(Server(namespace("jobs", 5)))) as scene:
            await scene.hears(
                WatchEvent("MODIFIED", namespace("jobs", 6)),
                WatchEvent("ADDED", namespace("more", 7)),
                WatchEvent("DELETED", namespace("jobs", 8)),
                WatchEvent("DELETED", namespace("jobs", 9)),
            )
            assert scene.changes == [("jobs", True), ("more", True), ("jobs", False)]

    play(story)


@pytest.mark.parametrize(
    "fault",
    [KubernetesError("the connection is broken"), ExpiredError("410")],
    ids=["broken", "expired"],
)
def test_an_api_server_that_does_not_answer_stops_no_source(fault: Exception) -> None:
    async def story() -> None:
        with running(Scene(Server(namespace("jobs", 5)))) as scene:
            await scene.hears()
            scene.server.refusal = RefusedError("may not list namespaces", status=403)
            await scene.hears(fault)
            await asyncio.sleep(3600)
            assert ("jobs" in scene.served, scene.changes) == (True, [("jobs", True)])

    play(story)


def test_changes_that_the_watch_has_missed_come_with_the_next_list() -> None:
    async def story() -> None:
        with running(Scene(Server(namespace("jobs", 5), namespace("old", 6)))) as scene:
            await scene.hears()
            scene.server.items = [namespace("jobs", 5), namespace("new", 9)]
            await scene.hears(ExpiredError("410"))
            assert scene.changes[2:] == [("new", True), ("old", False)]

    play(story)


def test_a_selector_that_matches_nothing_is_said_in_the_log() -> None:
    async def story() -> None:
        with capture_logs() as logs, running(Scene(Server())) as scene:
            await scene.hears()
            scene.served.report()
            assert [(entry["log_level"], entry["selector"]) for entry in logs] == [
                ("warning", SELECTOR)
            ]

    play(story)


class Cluster(Server):
    """Namespaces that may take long to list; nothing else is there.

    Attributes:
        listed: kinds, in the order in which they were listed.
    """

    def __init__(self, *items: dict[str, Any], seconds: float) -> None:
        super().__init__(*items)
        self.listed: list[str] = []
        self._seconds = seconds

    async def pages(
        self, kind: ResourceKind, namespace: str, *, selector: str
    ) -> AsyncGenerator[ListPage, None]:
        self.listed.append(kind.plural)
        if kind != NAMESPACE:
            yield ListPage([], "1")
            return
        assert selector == SELECTOR
        await asyncio.sleep(self._seconds)
        async for page in super().pages(kind, namespace, selector=selector):
            yield page


def watches(cluster: Cluster, changes: list[tuple[str, bool]]) -> Watches:
    return Watches(
        cluster,
        (),
        SELECTOR,
        tell=lambda *_: None,
        on_namespace=lambda name, is_served: changes.append((name, is_served)),
    )


def test_namespaces_are_known_before_anything_else_is_listed() -> None:
    async def story() -> None:
        cluster, changes = Cluster(namespace("jobs", 5), seconds=3), list[tuple[str, bool]]()
        async with watches(cluster, changes).running():
            assert cluster.listed.index("namespaces") == 0
            assert len(cluster.listed) > 6
            assert changes == [("jobs", True)]

    play(story)


def test_namespaces_that_are_listed_late_are_served_late() -> None:
    async def story() -> None:
        cluster, changes = Cluster(namespace("jobs", 5), seconds=50), list[tuple[str, bool]]()
        begun = virtual_time.clock()
        made = watches(cluster, changes)
        async with made.running():
            assert virtual_time.clock() - begun == pytest.approx(FIRST_LIST, abs=1)
            assert changes == []
            await asyncio.sleep(40)
            assert changes == [("jobs", True)]
            assert not any(informer.covers("jobs") for informer in made.informers)

    play(story)


def test_objects_of_a_namespace_that_loses_its_label_are_forgotten() -> None:
    async def story() -> None:
        cluster, changes = Cluster(namespace("jobs", 5), seconds=0), list[tuple[str, bool]]()
        made = watches(cluster, changes)
        async with made.running():
            forgotten: list[str] = []
            for informer in made.informers:
                informer.forget = forgotten.append  # type: ignore[method-assign]
            cluster.news.put_nowait(WatchEvent("DELETED", namespace("jobs", 8)))
            await asyncio.sleep(20)
            assert changes == [("jobs", True), ("jobs", False)]
            assert forgotten == ["jobs"] * len(made.informers)

    play(story)
