"""``report`` writes what someone needs who helps from afar; what it cannot read, it names."""

import contextlib
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from balanced_source_operator.bundle import Item, collect
from balanced_source_operator.cli import app
from balanced_source_operator.cli import report as command
from balanced_source_operator.doctor import outside
from balanced_source_operator.kube.port import KubernetesError, RefusedError
from balanced_source_operator.resources.kinds import (
    BALANCED_SOURCE,
    CONFIG_MAP,
    EVENT,
    NAME_LABEL,
    POD,
)
from support.builders import source_body
from support.examined import OF_FORMER_OPERATORS, OF_OPERATORS, Examined
from support.fake_kubernetes import FakeKubernetes

PODS = f"/api/v1/pods?{OF_OPERATORS}"


class Logged(Examined):
    """A cluster whose containers have logs."""

    async def log(
        self, namespace: str, pod: str, container: str, *, previous: bool, tail: int, limit: int
    ) -> str:
        if pod == "orders-1-driver" and container == "sidecar":
            raise RefusedError(f"pods {pod}: container has not started", status=400)
        return (
            f"{namespace} {pod} {container} {'before' if previous else 'now'}"
            " sasl.password=hunter2\n"
        )


def pod(name: str, *containers: str, restarts: int = 0) -> dict[str, Any]:
    statuses = [{"name": container, "restartCount": restarts} for container in containers]
    metadata = {"namespace": "default", "name": name, "labels": {NAME_LABEL: "orders"}}
    return {"metadata": metadata, "status": {"containerStatuses": statuses}}


class Scene:
    """A source with a driver, documents and events, and an operator elsewhere."""

    def __init__(self) -> None:
        self.server = FakeKubernetes()
        self.api = Logged(self.server)
        self.server.add(BALANCED_SOURCE, source_body())
        self.server.add(POD, pod("orders-1-driver", "spark", "sidecar", restarts=1))
        labels = {NAME_LABEL: "orders"}
        self.server.add(
            CONFIG_MAP,
            {"metadata": {"namespace": "default", "name": "orders-readers", "labels": labels}},
        )
        for about in ("orders", "orders-1-driver", "other", "ordersX"):
            metadata = {"namespace": "default", "name": f"{about}.1"}
            self.server.add(
                EVENT,
                {
                    "metadata": metadata,
                    "involvedObject": {"name": about},
                    "message": f"of {about}.",
                },
            )
        self.api.answers[PODS] = {
            "items": [
                {
                    "metadata": {"namespace": "system", "name": "operator-x"},
                    "status": {"containerStatuses": [{"name": "operator", "restartCount": 0}]},
                }
            ]
        }

    async def items(self) -> dict[str, Item]:
        return {item.path: item async for item in collect(self.api, "default", "orders")}


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Scene:
    monkeypatch.setattr(outside, "found_problems", lambda *_: {})
    return Scene()


async def test_it_has_the_source_its_objects_events_and_logs(scene: Scene) -> None:
    items = await scene.items()

    assert [path for path, item in items.items() if not item.is_missing] == [
        "source.yaml",
        "versions.yaml",
        "doctor.txt",
        "events.yaml",
        "objects/configmaps/orders-readers.yaml",
        "objects/pods/orders-1-driver.yaml",
        "logs/default/orders-1-driver/spark.log",
        "logs/default/orders-1-driver/spark.previous.log",
        "operator/system/operator-x.yaml",
        "logs/system/operator-x/operator.log",
    ]
    assert "before" in items["logs/default/orders-1-driver/spark.previous.log"].text
    about = items["events.yaml"].text
    assert [
        f"of {name}." in about for name in ("orders", "orders-1-driver", "other", "ordersX")
    ] == [
        True,
        True,
        False,
        False,
    ]
    assert not any("hunter2" in item.text for item in items.values())


def event(about: str, kind: str = "Pod") -> dict[str, Any]:
    return {
        "metadata": {"namespace": "default", "name": f"{about}.{kind}"},
        "involvedObject": {"name": about, "kind": kind},
        "message": f"of {about}.",
    }


async def test_events_are_those_of_the_source_and_of_no_other(scene: Scene) -> None:
    """`orders-eu` is another source, and so is `orders-2`, whose objects look like applications."""
    ours = ("orders-12", "orders-1-0a1b-exec-3", "orders-readers-0", "orders-h1-5b1f7c-1-driver")
    others = ("orders-eu-1-driver", "orders-eu-enumerator", "orders-2-1-driver", "orders-gone-1")
    for name in ("orders-eu", "orders-2"):
        body = source_body()
        body["metadata"] = {**body["metadata"], "name": name, "uid": f"uid-of-{name}"}
        scene.server.add(BALANCED_SOURCE, body)
        scene.server.add(EVENT, event(name, BALANCED_SOURCE.kind))
    for name in (*ours, *others):
        scene.server.add(EVENT, event(name))

    text = (await scene.items())["events.yaml"].text

    assert [name for name in ours if f"of {name}." not in text] == []
    assert [name for name in (*others, "orders-eu", "orders-2") if f"of {name}." in text] == []


async def test_what_cannot_be_read_is_named_and_the_rest_is_there(scene: Scene) -> None:
    del scene.api.answers[PODS]
    items = await scene.items()

    missing = {path: item.text for path, item in items.items() if item.is_missing}
    assert set(missing) == {
        "logs/default/orders-1-driver/sidecar.log",
        "logs/default/orders-1-driver/sidecar.previous.log",
        "operator",
    }
    assert "container has not started" in missing["logs/default/orders-1-driver/sidecar.log"]


async def test_that_no_pod_of_an_operator_was_found_is_said(scene: Scene) -> None:
    scene.api.answers[PODS] = {"items": []}
    scene.api.answers[PODS.replace(OF_OPERATORS, OF_FORMER_OPERATORS)] = {"items": []}
    item = (await scene.items())["operator"]

    assert item.is_missing
    assert item.text == "no pod has the label balancedsource.io/component=operator"


@pytest.fixture
def run(scene: Scene, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    @contextlib.asynccontextmanager
    async def connect(*, context: str = "") -> AsyncIterator[tuple[Logged, str]]:
        if context == "nowhere":
            raise KubernetesError("the API server does not answer: connection refused")
        yield scene.api, "default"

    monkeypatch.setattr(command, "connect", connect)
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(app, ["report", *arguments])


def test_the_bundle_is_private_and_names_missing_parts(run: Any, tmp_path: Path) -> None:
    result = run("orders", "--to", "bundle.zip")

    assert result.exit_code == 0, result.output
    assert "report: bundle.zip (10 files, 2 could not be read)" in result.stdout
    assert (tmp_path / "bundle.zip").stat().st_mode & 0o077 == 0
    with zipfile.ZipFile(tmp_path / "bundle.zip") as bundle:
        assert bundle.namelist()[:2] == ["README.txt", "source.yaml"]
        assert "container has not started" in bundle.read("missing.txt").decode()


def test_a_source_that_does_not_exist_leaves_no_file(run: Any, tmp_path: Path) -> None:
    result = run("nothing")

    assert result.exit_code != 0
    assert "there is no BalancedSource 'nothing' in namespace 'default'" in result.output
    assert not list(tmp_path.iterdir())


def test_an_existing_file_is_kept(run: Any, tmp_path: Path) -> None:
    (tmp_path / "there.zip").write_text("mine")
    result = run("orders", "--to", "there.zip")

    assert result.exit_code != 0
    assert "there.zip exists: name another file" in result.output
    assert (tmp_path / "there.zip").read_text() == "mine"


def test_a_cluster_that_does_not_answer_is_a_sentence(run: Any) -> None:
    result = run("orders", "--context", "nowhere")

    assert result.exit_code != 0
    assert "the API server does not answer" in result.output
    assert "Traceback" not in result.output
