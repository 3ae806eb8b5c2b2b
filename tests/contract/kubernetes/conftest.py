"""The operator's port to the API server: the fake, and the real adapter at a real API server."""

import itertools
from collections.abc import AsyncIterator, Iterator

import pytest
from kubernetes_asyncio import config
from kubernetes_asyncio.client import Configuration

from balanced_source_operator.kube.client import KubernetesClient
from balanced_source_operator.kube.port import KubernetesApi
from balanced_source_operator.kube.session import open_client
from support.fake_kubernetes import FakeKubernetes
from testbed.control_plane import ControlPlane
from testbed.versions import CHECKOUT

_names = itertools.count(1)


@pytest.fixture(scope="package")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    with ControlPlane(
        tmp_path_factory.mktemp("control-plane"), crds=[CHECKOUT / "crds"]
    ) as started:
        yield started


@pytest.fixture(params=["fake", pytest.param("real", marks=pytest.mark.integration)])
def which(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def namespace(which: str, request: pytest.FixtureRequest) -> str:
    name = f"contract-{next(_names)}"
    if which == "real":
        request.getfixturevalue("control_plane").kubectl("create", "namespace", name)
    return name


@pytest.fixture
async def api(which: str, request: pytest.FixtureRequest) -> AsyncIterator[KubernetesApi]:
    if which == "fake":
        yield FakeKubernetes().client()
        return
    configuration = Configuration()
    path = request.getfixturevalue("control_plane").kubeconfig()
    await config.load_kube_config(str(path), client_configuration=configuration)
    async with open_client(configuration) as client:
        yield KubernetesClient(client)
