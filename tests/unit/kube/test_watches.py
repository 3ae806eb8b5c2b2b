"""Informers run while their watches do, and names that reach the API server are valid."""

import asyncio
from typing import Any

import pytest

from balanced_source_operator.kube import watches
from balanced_source_operator.kube.port import InvalidNameError, collection_path, object_path
from balanced_source_operator.kube.watches import FIRST_LIST, Watches
from balanced_source_operator.resources.kinds import CONFIG_MAP, POD, ResourceKind
from support import virtual_time


class InformerStub:
    """Lists after some seconds, then waits; notes the namespaces that it is given."""

    def __init__(self, kind: ResourceKind, *, seconds: float) -> None:
        self.kind = kind
        self.namespaces: list[str] = []
        self.runs = False
        self._seconds = seconds
        self._has_listed = asyncio.Event()

    async def run(self) -> None:
        self.runs = True
        try:
            await asyncio.sleep(self._seconds)
            self._has_listed.set()
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)  # an end takes a moment
            self.runs = False

    async def first(self) -> None:
        await self._has_listed.wait()

    def add(self, namespace: str) -> None:
        self.namespaces.append(namespace)

    def forget(self, namespace: str) -> None:
        self.namespaces.remove(namespace)


def watching(monkeypatch: pytest.MonkeyPatch, *informers: InformerStub) -> tuple[Watches, Any]:
    seen: list[tuple[str, bool]] = []
    monkeypatch.setattr(watches, "informers_for", lambda *_, **__: list(informers))
    unused: Any = None
    made = Watches(
        unused,
        ("jobs",),
        "",
        tell=unused,
        on_namespace=lambda name, is_served: seen.append((name, is_served)),
    )
    return made, seen


@pytest.mark.parametrize(("slowest", "waited"), [(5.0, 5.0), (10 * FIRST_LIST, FIRST_LIST)])
def test_informers_have_listed_what_they_can_and_end_with_the_body(
    monkeypatch: pytest.MonkeyPatch, slowest: float, waited: float
) -> None:
    """A kind that cannot be listed does not keep the others waiting for long."""

    async def play() -> None:
        informers = [InformerStub(POD, seconds=1.0), InformerStub(CONFIG_MAP, seconds=slowest)]
        made, _ = watching(monkeypatch, *informers)
        begin = virtual_time.clock()
        async with made.running():
            assert virtual_time.clock() - begin == pytest.approx(waited)
            assert [informer.runs for informer in informers] == [True, True]
        assert [informer.runs for informer in informers] == [False, False]

    virtual_time.run(play())


def test_all_informers_follow_a_namespace_while_it_is_served(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def play() -> None:
        informers = [InformerStub(POD, seconds=0.0), InformerStub(CONFIG_MAP, seconds=0.0)]
        made, seen = watching(monkeypatch, *informers)
        made._on_namespace("jobs", True)
        assert [informer.namespaces for informer in informers] == [["jobs"], ["jobs"]]
        made._on_namespace("jobs", False)
        assert [informer.namespaces for informer in informers] == [[], []]
        assert seen == [("jobs", True), ("jobs", False)]

    virtual_time.run(play())


@pytest.mark.parametrize("name", ["", "..", "a/b", "A", "a?b", "a" * 300])
def test_no_other_path_can_be_made_of_a_name(name: str) -> None:
    with pytest.raises(InvalidNameError):
        object_path(POD, "jobs", name)
    with pytest.raises(InvalidNameError):
        object_path(POD, name, "driver")
    assert object_path(POD, "jobs", "driver") == "/api/v1/namespaces/jobs/pods/driver"
    assert collection_path(POD, "jobs") == "/api/v1/namespaces/jobs/pods"


@pytest.mark.parametrize("name", ["..", "a/b", "A", "a?b"])
def test_no_other_collection_can_be_named_by_a_namespace(name: str) -> None:
    with pytest.raises(InvalidNameError):
        collection_path(POD, name)
