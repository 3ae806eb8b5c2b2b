"""Where the enumerator state is kept.

Files, ConfigMaps of the fake, ConfigMaps of a real API server.
"""

import itertools
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from kubernetes_asyncio import config
from kubernetes_asyncio.client import ApiClient, Configuration

from balanced_source_adapters.folder import FolderStore
from balanced_source_operator.kube.client import KubernetesClient
from balanced_source_operator.kube.port import KubernetesApi
from balanced_source_operator.resources.identity import Identity
from balanced_source_operator.resources.kinds import CONFIG_MAP
from balanced_source_operator.runtime.documents import DocumentWriter
from contract.suites.state_store import OpenStore, StateStoreContract
from support.fake_kubernetes import FakeKubernetes
from testbed.control_plane import ControlPlane

_names = itertools.count(1)


class _Folder:
    """`FolderStore` blocks; a store of the suite is awaited."""

    def __init__(self, path: Path) -> None:
        self._store = FolderStore(path)

    async def read(self) -> str | None:
        return self._store.read()

    async def swap(self, text: str) -> None:
        self._store.swap(text)


async def _config_maps(api: KubernetesApi, namespace: str) -> OpenStore:
    """Documents of a source that exists: a left-over of a namesake does not count as stored."""
    owner = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"namespace": namespace, "name": f"owner-{next(_names)}"},
    }
    made = await api.create(CONFIG_MAP, owner)
    source = Identity(
        namespace=namespace, name=made["metadata"]["name"], uid=made["metadata"]["uid"]
    )
    return lambda: DocumentWriter(api, source, source.documents.state)


class TestFolder(StateStoreContract):
    @pytest.fixture
    def open_store(self, tmp_path: Path) -> OpenStore:
        return lambda: _Folder(tmp_path / "deep" / "enumerator.json")


class TestFakeConfigMap(StateStoreContract):
    @pytest.fixture
    async def open_store(self) -> OpenStore:
        return await _config_maps(FakeKubernetes().client(), "default")


@pytest.fixture(scope="module")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Without our CRD.

    The garbage collector leaves children of an owner alone whose kind no one knows.
    """
    with ControlPlane(tmp_path_factory.mktemp("stores")) as started:
        yield started


@pytest.mark.integration
class TestConfigMap(StateStoreContract):
    @pytest.fixture
    async def open_store(self, control_plane: ControlPlane) -> AsyncIterator[OpenStore]:
        configuration = Configuration()
        await config.load_kube_config(
            str(control_plane.kubeconfig()), client_configuration=configuration
        )
        async with ApiClient(configuration) as client:
            yield await _config_maps(KubernetesClient(client), "default")


async def test_a_document_with_other_labels_is_still_ours() -> None:
    """Someone may change the metadata of a ConfigMap; only another document is written again."""
    server = FakeKubernetes()
    writer: DocumentWriter = (await _config_maps(server.client(), "default"))()  # type: ignore[assignment]
    await writer.swap("state")
    assert not await writer.is_still_foreign()

    server.edit(CONFIG_MAP, "default", writer.name, {"metadata": {"labels": {"team": "shop"}}})
    assert not await writer.is_still_foreign()
    server.edit(CONFIG_MAP, "default", writer.name, {"data": {"document.json": "another"}})
    assert await writer.is_still_foreign()
