"""Lists and watches of a kind, at a real API server."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from kubernetes_asyncio import config
from kubernetes_asyncio.client import ApiClient, Configuration

from balanced_source_operator.kube.client import KubernetesClient
from balanced_source_operator.kube.port import UnknownKindError
from balanced_source_operator.kube.stream import KubernetesStream, WatchEvent
from balanced_source_operator.resources.kinds import (
    APACHE_APPLICATION,
    CONFIG_MAP,
    NAME_LABEL,
    ResourceKind,
)
from support.apache_samples import MINIMAL, REAL, RICH, build
from testbed.control_plane import ControlPlane

pytestmark = [pytest.mark.integration, pytest.mark.asyncio]


@pytest.fixture
async def client(control_plane: ControlPlane) -> AsyncIterator[ApiClient]:
    configuration = Configuration()
    await config.load_kube_config(
        str(control_plane.kubeconfig()), client_configuration=configuration
    )
    async with ApiClient(configuration) as made:
        yield made


@pytest.fixture
def namespace(control_plane: ControlPlane, request: pytest.FixtureRequest) -> str:
    name = f"stream-{abs(hash(request.node.name)) % 10**8}"
    control_plane.kubectl("create", "namespace", name)
    return name


def config_map(namespace: str, name: str, text: str = "x", **labels: str) -> dict[str, Any]:
    metadata = {"namespace": namespace, "name": name, "labels": {NAME_LABEL: "orders", **labels}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"text": text}}


async def test_a_watch_continues_where_a_list_ended_and_lines_may_be_long(
    client: ApiClient, namespace: str
) -> None:
    api, stream = KubernetesClient(client), KubernetesStream(client)
    await api.create(CONFIG_MAP, config_map(namespace, "a"))
    (listed,) = [page async for page in stream.pages(CONFIG_MAP, namespace, selector=NAME_LABEL)]
    assert [item["metadata"]["name"] for item in listed.items] == ["a"]
    found: list[WatchEvent] = []

    async def follow() -> None:
        async for change in stream.watch(
            CONFIG_MAP, namespace, selector=NAME_LABEL, revision=listed.revision
        ):
            found.append(change)
            if change.event == "DELETED":
                return

    following = asyncio.create_task(follow())
    long = "y" * 900_000
    made = await api.create(CONFIG_MAP, config_map(namespace, "b", long))
    unlabelled = {**made, "metadata": {**made["metadata"], "labels": {}}}
    await api.replace(CONFIG_MAP, unlabelled)
    async with asyncio.timeout(60):
        await following
    seen = [
        (change.event, change.manifest["metadata"]["name"])
        for change in found
        if change.event != "BOOKMARK"
    ]
    assert seen == [("ADDED", "b"), ("DELETED", "b")], "it no longer has the label"
    assert next(c for c in found if c.event == "ADDED").manifest["data"]["text"] == long


async def test_all_namespaces_and_more_than_one_page(
    client: ApiClient, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("balanced_source_operator.kube.stream.PAGE", 2)
    api, stream = KubernetesClient(client), KubernetesStream(client)
    for number in range(5):
        await api.create(CONFIG_MAP, config_map(namespace, f"m-{number}", team=namespace))
    pages = [page async for page in stream.pages(CONFIG_MAP, "", selector=f"team={namespace}")]
    names = [[item["metadata"]["name"] for item in page.items] for page in pages]
    assert names == [["m-0", "m-1"], ["m-2", "m-3"], ["m-4"]]
    assert len({page.revision for page in pages}) == 1, "a watch continues there"


async def test_a_kind_that_is_not_installed_says_so(client: ApiClient) -> None:
    things = ResourceKind("example.com", "v1", "things", "Thing")
    with pytest.raises(UnknownKindError, match=r"things\.example\.com"):
        await anext(KubernetesStream(client).pages(things, "", selector=""))


@pytest.mark.parametrize("crd", [MINIMAL, *([Path(REAL)] if REAL else [])])
async def test_the_api_server_accepts_what_apaches_operator_is_given(
    client: ApiClient, control_plane: ControlPlane, namespace: str, crd: Path
) -> None:
    control_plane.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(crd))
    control_plane.kubectl(
        "wait", "--for=condition=Established", "crd/sparkapplications.spark.apache.org"
    )
    api = KubernetesClient(client)
    for number, changes in enumerate(({}, RICH)):
        manifest = build(**changes)
        metadata = {"name": f"orders-{number}", "namespace": namespace}
        stored = await api.create(APACHE_APPLICATION, {**manifest, "metadata": metadata})
        assert _of_these(manifest["spec"], stored["spec"]) == manifest["spec"], "nothing was pruned"


def _of_these(given: Any, stored: Any) -> Any:
    """What is stored of the given fields: the definition adds its defaults to them."""
    if not isinstance(given, dict) or not isinstance(stored, dict):
        return stored
    return {key: _of_these(given[key], value) for key, value in stored.items() if key in given}
