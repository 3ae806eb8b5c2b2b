"""Commands on a machine without a kubeconfig say so in one sentence, and what else can be done."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import Result
from kubernetes_asyncio.config import incluster_config, kube_config
from typer.testing import CliRunner

from balanced_source_operator.cli import app
from balanced_source_operator.kube import connect as connecting
from balanced_source_operator.kube.connect import connect
from support.builders import source_body


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "orders.yaml").write_text(yaml.safe_dump(source_body()))
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


@pytest.mark.parametrize(
    ("command", "otherwise"),
    [
        (["status"], ", or name the folder of local mode with --dir"),
        (["top", "orders"], ", or name the folder of local mode with --dir"),
        (["plan", "-f", "orders.yaml"], ", or name a stored state with --state"),
        (["report", "orders"], ""),
        (["rebalance", "orders"], ""),
        (["validate", "--server", "always", "-f", "orders.yaml"], ""),
    ],
)
def test_a_command_that_needs_a_cluster_says_what_is_missing(
    folder: Path, command: list[str], otherwise: str, caplog: pytest.LogCaptureFixture
) -> None:
    result = run(*command)

    assert result.exit_code == 2
    assert result.stderr == (
        f"Error: kubeconfig {folder / 'none'}: no kubeconfig found. Set KUBECONFIG, or log in to a"
        f" cluster{otherwise}\n"
    )
    assert caplog.messages == []


def test_validate_adds_one_note(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    (folder / "orders.yaml").write_text(yaml.safe_dump(source_body(application={})))
    result = run("validate", "-f", "orders.yaml")

    assert result.exit_code == 1
    assert result.stderr == "note: no kubeconfig found: not checked by an API server\n"
    assert caplog.messages == []


def test_a_context_that_was_named_is_needed(folder: Path) -> None:
    result = run("validate", "--context", "shop", "-f", "orders.yaml")

    assert (folder.name in result.stderr, result.exit_code) == (True, 2)


def test_one_of_several_files_is_enough(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "config").write_text("{}")
    monkeypatch.setenv("KUBECONFIG", f"{folder / 'none'}:{folder / 'config'}")
    result = run("rebalance", "orders")

    assert result.exit_code == 2
    assert "cannot be used: " in result.stderr


def use(path: Path, config: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Write a kubeconfig, and take it for that of kubectl."""
    path.write_text(yaml.safe_dump(config))
    monkeypatch.setenv("KUBECONFIG", str(path))
    # The library looks at the environment when it is imported.
    monkeypatch.setattr(kube_config, "KUBE_CONFIG_DEFAULT_LOCATION", str(path))


def test_a_kubeconfig_that_cannot_be_used_says_why(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(folder / "config", {}, monkeypatch)
    result = run("rebalance", "orders")

    assert "Expected key current-context" in result.stderr


@pytest.mark.parametrize(("context", "namespace"), [("", "default"), ("shop", "orders")])
async def test_the_namespace_is_that_of_the_context_that_was_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch, context: str, namespace: str
) -> None:
    names = {"home": None, "shop": "orders"}
    where = {"cluster": "c", "user": "u"}
    config = {
        "current-context": "home",
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:9"}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [
            {"name": name, "context": where | ({"namespace": found} if found else {})}
            for name, found in names.items()
        ],
    }
    use(folder / "config", config, monkeypatch)

    async with connect(context=context) as (_, found):
        assert found == namespace


@pytest.fixture
def pod(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The folder of a pod's service account; the pod has no kubeconfig."""
    account = tmp_path / "serviceaccount"
    account.mkdir()
    for name, text in (("token", "t"), ("ca.crt", "c"), ("namespace", "jobs\n")):
        (account / name).write_text(text)
    monkeypatch.setattr(connecting, "SERVICE_ACCOUNT", account)
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(account / "token"))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(account / "ca.crt"))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return account


def connected(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What clients are made for, instead of clients: the certificate is none."""

    @asynccontextmanager
    async def opened(configuration: Any) -> AsyncIterator[Any]:
        made.append(configuration)
        yield None

    made: list[Any] = []
    monkeypatch.setattr(connecting, "open_client", opened)
    return made


@pytest.mark.usefixtures("pod")
async def test_in_a_pod_a_command_asks_the_pod_s_own_cluster(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """``kubectl exec`` in the operator's pod: only pods reach some brokers."""
    made = connected(monkeypatch)
    async with connect() as (_, namespace):
        assert (namespace, made[0].host) == ("jobs", "https://10.0.0.1:443")


def test_a_pod_without_a_service_account_has_no_cluster(pod: Path) -> None:
    (pod / "token").unlink()

    assert "no kubeconfig found. Set KUBECONFIG" in run("status").stderr


def test_in_a_pod_a_kubeconfig_that_was_named_is_needed(
    pod: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(pod / "none"))

    assert f"kubeconfig {pod / 'none'}: no kubeconfig found" in run("status").stderr


def test_a_damaged_service_account_is_said(pod: Path) -> None:
    (pod / "namespace").unlink()
    result = run("status")

    assert (result.exit_code, f"service account in {pod}: cannot be used" in result.stderr) == (
        2,
        True,
    )
