"""One list and one watch for all sources.

What is kept is what the API server has, whatever the watch goes through.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from structlog.testing import capture_logs

from balanced_source_operator.kube import informer as module
from balanced_source_operator.kube.cached import CachedApi
from balanced_source_operator.kube.informer import LIST_ADDED, RELIST, RETRY_FIRST, Informer
from balanced_source_operator.kube.port import (
    KubernetesError,
    Manifest,
    RefusedError,
    UnknownKindError,
)
from balanced_source_operator.kube.stream import (
    SILENCE,
    ExpiredError,
    SilentWatchError,
    WatchEvent,
)
from balanced_source_operator.resources.kinds import (
    BALANCED_SOURCE,
    CONFIG_MAP,
    KUBEFLOW_APPLICATION,
    NAME_LABEL,
    POD,
    ResourceKind,
)
from support import virtual_time
from support.fake_kubernetes import FakeKubernetes
from support.watched_server import Server


def config_map(
    name: str, revision: int, *, source: str = "orders", namespace: str = "default"
) -> dict[str, Any]:
    metadata = {
        "name": name,
        "namespace": namespace,
        "resourceVersion": str(revision),
        "labels": {NAME_LABEL: source},
    }
    return {"kind": "ConfigMap", "metadata": metadata}


class Scene:
    """An informer that runs, and what it has told."""

    def __init__(
        self,
        server: Server,
        *,
        kind: ResourceKind = CONFIG_MAP,
        namespace: str = "",
        namespaces: set[str] | None = None,
    ) -> None:
        self.told: list[tuple[str, str]] = []
        self.informer = Informer(
            server,
            kind,
            namespace,
            selector=NAME_LABEL,
            tell=self._tell,
            namespaces=namespaces,
        )
        self.task = asyncio.create_task(self.informer.run())
        self._server = server

    def _tell(self, kind: ResourceKind, event: str, manifest: Manifest) -> None:
        self.told.append((event, manifest["metadata"]["name"]))

    def names(self, source: str = "orders") -> list[str]:
        return sorted(
            item["metadata"]["name"] for item in self.informer.of_source("default", source)
        )

    async def hears(self, *news: WatchEvent | Exception | None) -> None:
        for one in news:
            self._server.news.put_nowait(one)
        await asyncio.sleep(RELIST / 100)


@pytest.fixture(autouse=True)
def _clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "time", virtual_time.time_module())


@contextmanager
def running(scene: Scene) -> Iterator[Scene]:
    try:
        yield scene
    finally:
        scene.task.cancel()


def play(story: Callable[[], Any]) -> None:
    virtual_time.run(story())


def test_listed_and_changed_objects_are_kept_and_announced() -> None:
    async def story() -> None:
        with running(
            Scene(Server(config_map("a", 5), config_map("other", 6, source="clicks")))
        ) as scene:
            await scene.hears(
                WatchEvent("ADDED", config_map("b", 7)),
                WatchEvent("MODIFIED", config_map("a", 8)),
                WatchEvent("BOOKMARK", _at(20)),
            )
            assert (scene.names(), scene.names("clicks"), scene.informer.is_live) == (
                ["a", "b"],
                ["other"],
                True,
            )
            await scene.hears(WatchEvent("DELETED", config_map("a", 9)))
            assert scene.names() == ["b"]
            told = [
                ("ADDED", "a"),
                ("ADDED", "other"),
                ("ADDED", "b"),
                ("MODIFIED", "a"),
                ("DELETED", "a"),
            ]
            assert scene.told == told

    play(story)


def test_a_watch_that_ends_continues_where_it_was_without_a_list() -> None:
    async def story() -> None:
        server = Server(config_map("a", 5))
        with running(Scene(server)) as scene:
            await scene.hears(
                WatchEvent("BOOKMARK", _at(20)), None, WatchEvent("ADDED", config_map("b", 21))
            )
            assert (server.lists, server.watched_from, scene.names()) == (
                1,
                ["5", "20"],
                ["a", "b"],
            )

    play(story)


@pytest.mark.parametrize(
    "error", [KubernetesError("the connection is broken"), RuntimeError("a mistake of ours")]
)
def test_no_failure_ends_an_informer(error: Exception) -> None:
    async def story() -> None:
        server = Server(config_map("a", 5))
        with running(Scene(server)) as scene:
            server.items.append(config_map("b", 6))
            await scene.hears(error, WatchEvent("ADDED", config_map("b", 6)))
            assert (scene.names(), scene.informer.is_live) == (["a", "b"], True)

    play(story)


def test_a_silent_watch_is_opened_again_without_a_word() -> None:
    """A cluster in which nothing of a kind has changed since its API server started is silent."""

    async def story() -> None:
        server = Server(config_map("a", 5))
        with capture_logs() as logs, running(Scene(server)) as scene:
            await scene.hears()
            begin = virtual_time.clock()
            for number in range(5):
                await asyncio.sleep(begin + (number + 1) * SILENCE - virtual_time.clock())
                server.news.put_nowait(SilentWatchError("no byte"))
            await asyncio.sleep(0.001)
            assert len(server.watched_from) == 6, "there is no pause"
            await scene.hears(WatchEvent("ADDED", config_map("b", 6)))

        assert (server.lists, server.watched_from) == (1, ["5"] * 6)
        assert (scene.names(), scene.informer.is_live) == (["a", "b"], True)
        assert [entry for entry in logs if entry["log_level"] != "debug"] == []

    play(story)


@pytest.mark.parametrize("error", [KubernetesError("broken"), SilentWatchError("no byte")])
def test_a_watch_that_breaks_continues_behind_what_it_has_told(error: Exception) -> None:
    async def story() -> None:
        server = Server(config_map("a", 5))
        with running(Scene(server)) as scene:
            await scene.hears(WatchEvent("MODIFIED", config_map("a", 9)), error)
            assert server.watched_from == ["5", "9"], "older states are not told after newer ones"

    play(story)


def test_after_an_expired_revision_a_list_reports_deleted_objects() -> None:
    async def story() -> None:
        server = Server(config_map("a", 5), config_map("b", 6))
        with running(Scene(server)) as scene:
            await scene.hears()
            server.items = [config_map("b", 6), config_map("c", 30)]
            await scene.hears(ExpiredError("410"))
            assert (scene.names(), scene.told[2:]) == (
                ["b", "c"],
                [("ADDED", "c"), ("DELETED", "a")],
            )

    play(story)


def test_everything_is_listed_again_now_and_then() -> None:
    """Should a watch ever lose something. The next event ends the old watch."""

    async def story() -> None:
        server = Server(config_map("a", 5))
        with running(Scene(server)) as scene:
            await scene.hears()
            server.items.append(config_map("lost", 6))
            await asyncio.sleep(RELIST)
            await scene.hears(WatchEvent("BOOKMARK", _at(20)))
            assert scene.names() == ["a", "lost"]

    play(story)


def test_a_kind_that_is_unknown_for_a_moment_forgets_no_object() -> None:
    """An API server that has just started may not serve a CRD yet.

    A second application must not be started then.
    """

    async def story() -> None:
        server = Server(config_map("a", 5))
        with running(Scene(server)) as scene:
            await scene.hears()
            server.refusal = UnknownKindError("the kind is not installed")
            await scene.hears(ExpiredError("410"))
            assert (scene.informer.is_unknown, scene.informer.is_live, scene.told) == (
                True,
                False,
                [("ADDED", "a")],
            )
            server.refusal = None
            await asyncio.sleep(module.UNKNOWN)
            assert (scene.informer.is_unknown, scene.names()) == (False, ["a"])

    play(story)


def test_waiting_for_the_first_list_ends_with_a_refusal() -> None:
    async def story() -> None:
        server = Server()
        server.refusal = RefusedError("not allowed", status=403)
        with running(Scene(server)) as scene:
            await scene.informer.first()
            assert not scene.informer.is_live

    play(story)


def test_pods_are_kept_without_their_spec_and_nothing_with_its_managed_fields() -> None:
    pod = {**config_map("driver", 1), "spec": {"containers": []}, "status": {"phase": "Running"}}
    pod["metadata"]["managedFields"] = [{"manager": "kubectl"}]
    slim = module.slim(POD, pod)
    assert (slim.keys(), "managedFields" in slim["metadata"]) == (
        {"kind", "metadata", "status"},
        False,
    )
    assert "managedFields" in pod["metadata"], "the original is changed"


class Paged(Server):
    """Lists an object per page, and does between two pages what a test says."""

    def __init__(self, *items: dict[str, Any]) -> None:
        super().__init__(*items)
        self.page = 1
        self.between = list[Callable[[], None]]()

    async def between_pages(self) -> None:
        await asyncio.sleep(0)
        if self.between:
            self.between.pop(0)()


def _break() -> None:
    raise KubernetesError("the list was cut short")


def test_a_list_in_pages_reports_deleted_objects_after_its_last_page() -> None:
    async def story() -> None:
        server = Paged(*(config_map(name, n) for n, name in enumerate("abc", start=5)))
        with running(Scene(server)) as scene:
            await scene.hears()
            assert scene.names() == ["a", "b", "c"]
            server.items = [config_map("b", 9), config_map("c", 7)]
            server.between = [_break]
            await asyncio.sleep(RELIST)
            await scene.hears(WatchEvent("BOOKMARK", _at(20)))
            await asyncio.sleep(RETRY_FIRST)
            told = [("ADDED", "a"), ("ADDED", "b"), ("ADDED", "c")]
            changes = [("MODIFIED", "b"), ("DELETED", "a")]
            assert (server.lists, scene.told) == (3, told + changes)
            assert scene.names() == ["b", "c"]

    play(story)


class TestSomeNamespaces:
    def test_a_namespace_that_is_added_between_two_pages_is_covered_by_the_next_list(self) -> None:
        async def story() -> None:
            namespaces: set[str] = set()
            server = Paged(config_map("a", 5), config_map("b", 6))

            def add() -> None:
                namespaces.add("default")
                scene.informer.add("default")

            server.between = [add]
            with running(Scene(server, namespaces=namespaces)) as scene:
                await scene.hears(WatchEvent("BOOKMARK", _at(20)))
                assert (scene.names(), scene.informer.covers("default")) == (["b"], False)

                await asyncio.sleep(LIST_ADDED)
                await scene.hears(WatchEvent("BOOKMARK", _at(21)))
                assert (scene.names(), scene.informer.covers("default")) == (["a", "b"], True)

        play(story)

    def test_objects_of_other_namespaces_are_neither_kept_nor_told_of(self) -> None:
        async def story() -> None:
            server = Server(config_map("a", 5), config_map("x", 6, namespace="other"))
            with running(Scene(server, namespaces={"default"})) as scene:
                await scene.hears(
                    WatchEvent("ADDED", config_map("y", 7, namespace="other")),
                    WatchEvent("DELETED", config_map("x", 8, namespace="other")),
                )
                assert scene.told == [("ADDED", "a")]
                assert scene.informer.get("other", "y") is None
                assert scene.informer.covers("default")

        play(story)

    def test_a_namespace_that_is_added_is_covered_after_the_next_list(self) -> None:
        async def story() -> None:
            namespaces: set[str] = set()
            server = Server(config_map("a", 5))
            with running(Scene(server, namespaces=namespaces)) as scene:
                await scene.hears()
                namespaces.add("default")
                scene.informer.add("default")
                await scene.hears(WatchEvent("ADDED", config_map("b", 7)))
                server.items.append(config_map("b", 7))
                assert (scene.names(), scene.informer.covers("default")) == (["b"], False)

                await asyncio.sleep(LIST_ADDED)
                await scene.hears(WatchEvent("BOOKMARK", _at(20)))
                assert (scene.names(), scene.informer.covers("default")) == (["a", "b"], True)
                assert scene.told == [("ADDED", "b"), ("ADDED", "a")]

        play(story)

    def test_namespaces_that_are_added_together_share_a_list(self) -> None:
        async def story() -> None:
            namespaces: set[str] = set()
            server = Server(config_map("a", 5))
            with running(Scene(server, namespaces=namespaces)) as scene:
                await scene.hears()
                for number in range(20):
                    namespaces.add(f"n{number}")
                    scene.informer.add(f"n{number}")
                    await asyncio.sleep(0.5)
                    server.news.put_nowait(WatchEvent("BOOKMARK", _at(20 + number)))
                await asyncio.sleep(LIST_ADDED)
                await scene.hears(WatchEvent("BOOKMARK", _at(50)))
                assert server.lists == 2
                assert scene.informer.covers("n19")

        play(story)

    def test_a_namespace_that_is_let_go_is_forgotten_without_a_word(self) -> None:
        async def story() -> None:
            namespaces = {"default"}
            server = Server(config_map("a", 5))
            with running(Scene(server, namespaces=namespaces)) as scene:
                await scene.hears()
                namespaces.clear()
                scene.informer.forget("default")
                assert (scene.names(), scene.told) == ([], [("ADDED", "a")])
                await asyncio.sleep(RELIST)
                await scene.hears(WatchEvent("BOOKMARK", _at(20)))
                assert (server.lists, scene.names(), scene.told) == (2, [], [("ADDED", "a")])

        play(story)


class TestCachedApi:
    def test_what_was_in_an_added_namespace_before_is_read_from_the_api_server(self) -> None:
        async def story() -> None:
            client, namespaces = FakeKubernetes().client(), {"default"}
            with running(Scene(Server(config_map("a", 5)), namespaces=namespaces)) as scene:
                api = CachedApi(client, [scene.informer])
                await scene.hears()
                namespaces.add("other")
                scene.informer.add("other")
                await api.list(CONFIG_MAP, "other", selector=f"{NAME_LABEL}=orders")
                assert client.calls == ["list configmaps"]
                await api.list(CONFIG_MAP, "default", selector=f"{NAME_LABEL}=orders")
                assert client.calls == ["list configmaps"]

        play(story)

    def test_reads_of_watched_kinds_cost_no_request_once_they_are_listed(self) -> None:
        async def story() -> None:
            client = FakeKubernetes().client()
            with running(Scene(Server(config_map("a", 5)))) as scene:
                api = CachedApi(client, [scene.informer])
                await scene.informer.first()
                found = await api.list(CONFIG_MAP, "default", selector=f"{NAME_LABEL}=orders")
                assert ([item["metadata"]["name"] for item in found], client.calls) == (["a"], [])

        play(story)

    def test_objects_that_no_informer_knows_are_read_from_the_api_server(self) -> None:
        async def story() -> None:
            client, server = FakeKubernetes().client(), Server()
            server.refusal = RefusedError("not allowed", status=403)
            with running(Scene(server)) as scene:
                api = CachedApi(client, [scene.informer])
                await scene.informer.first()
                await api.list(CONFIG_MAP, "default", selector=f"{NAME_LABEL}=orders")
                await api.list(POD, "default", selector=f"{NAME_LABEL}=orders")
                assert client.calls == ["list configmaps", "list pods"]

        play(story)

    def test_a_document_is_never_read_from_memory(self) -> None:
        async def story() -> None:
            client = FakeKubernetes().client()
            with running(Scene(Server(config_map("orders-enumerator", 5)))) as scene:
                await scene.informer.first()
                await CachedApi(client, [scene.informer]).get(
                    CONFIG_MAP, "default", "orders-enumerator"
                )
                assert client.calls == ["get configmaps orders-enumerator"]

        play(story)

    def test_an_unknown_source_is_looked_up_before_it_counts_as_deleted(self) -> None:
        async def story() -> None:
            client = FakeKubernetes().client()
            with running(Scene(Server(config_map("orders", 5)), kind=BALANCED_SOURCE)) as scene:
                api = CachedApi(client, [scene.informer])
                await scene.informer.first()
                assert await api.get(BALANCED_SOURCE, "default", "orders") is not None
                assert await api.get(BALANCED_SOURCE, "default", "new") is None
                assert client.calls == ["get balancedsources new"]

        play(story)

    def test_a_kind_that_the_api_server_does_not_know_is_not_asked_for_by_each_source(self) -> None:
        async def story() -> None:
            client, server = FakeKubernetes().client(), Server()
            server.refusal = UnknownKindError("the kind is not installed")
            with running(Scene(server, kind=KUBEFLOW_APPLICATION)) as scene:
                await scene.informer.first()
                with pytest.raises(
                    UnknownKindError, match=r"sparkapplications\.sparkoperator\.k8s\.io"
                ):
                    await CachedApi(client, [scene.informer]).list(
                        KUBEFLOW_APPLICATION, "default", selector=f"{NAME_LABEL}=orders"
                    )
                assert client.calls == []

        play(story)


def _at(revision: int) -> dict[str, Any]:
    return {"metadata": {"resourceVersion": str(revision)}}
