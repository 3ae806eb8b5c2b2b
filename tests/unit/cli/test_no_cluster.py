"""Commands on a machine without a kubeconfig say so in one sentence, and what else can be done."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import Result
from kubernetes_asyncio.config import kube_config
from typer.testing import CliRunner

from balanced_source_operator.cli import app
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
