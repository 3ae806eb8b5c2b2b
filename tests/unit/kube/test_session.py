"""How the client of the API server speaks HTTP: its proxy, and that no password is looked for."""

import asyncio
from pathlib import Path

import pytest
from aiohttp import web
from kubernetes_asyncio.client import Configuration

from balanced_source_operator.kube.client import KubernetesClient
from balanced_source_operator.kube.session import open_client, proxy_of_environment
from balanced_source_operator.resources.kinds import CONFIG_MAP

SERVER = "https://10.0.0.1:6443"


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


async def asked(configuration: Configuration) -> list[str]:
    """Return what the API server is told of the account, once for each of three requests."""
    seen: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        seen.append(request.headers["Authorization"])
        return web.json_response({"kind": "ConfigMap"})

    application = web.Application()
    application.router.add_get("/{path:.*}", answer)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        configuration.host = f"http://127.0.0.1:{runner.addresses[0][1]}"
        async with open_client(configuration) as client:
            for _ in range(3):
                assert await KubernetesClient(client).get(CONFIG_MAP, "default", "orders")
    finally:
        await runner.cleanup()
    return seen


def test_the_password_of_a_netrc_file_is_not_for_the_api_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its default password is for any server that is not named."""
    file = tmp_path / "netrc"
    file.write_text("default login someone password secret\n")
    file.chmod(0o600)
    monkeypatch.setenv("NETRC", str(file))
    configuration = Configuration()
    configuration.api_key = {"BearerToken": "Bearer token"}
    assert asyncio.run(asked(configuration)) == ["Bearer token"] * 3


@pytest.mark.parametrize(
    ("environment", "server", "proxy"),
    [
        ({}, SERVER, None),
        ({"HTTPS_PROXY": "http://proxy:3128"}, SERVER, "http://proxy:3128"),
        ({"https_proxy": "http://proxy:3128"}, SERVER, "http://proxy:3128"),
        ({"HTTP_PROXY": "http://proxy:3128"}, SERVER, None),
        ({"HTTPS_PROXY": "http://proxy:3128", "NO_PROXY": "10.0.0.1"}, SERVER, None),
        ({"HTTPS_PROXY": "http://proxy:3128", "NO_PROXY": "*"}, SERVER, None),
        ({"HTTPS_PROXY": "http://proxy:3128", "NO_PROXY": ".svc"}, SERVER, "http://proxy:3128"),
        ({"HTTPS_PROXY": "http://proxy:3128"}, "", None),
    ],
)
def test_the_environment_names_the_proxy_unless_the_server_is_an_exception(
    environment: dict[str, str], server: str, proxy: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert proxy_of_environment(server) == proxy


@pytest.mark.parametrize("of_file", [None, "http://named:3128"])
def test_the_proxy_of_a_kubeconfig_goes_before_that_of_the_environment(
    of_file: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    configuration = Configuration()
    configuration.host, configuration.proxy = SERVER, of_file

    async def proxy_of_client() -> str | None:
        async with open_client(configuration) as client:
            return client.rest_client.proxy  # type: ignore[no-any-return]

    assert asyncio.run(proxy_of_client()) == (of_file or "http://proxy:3128")
