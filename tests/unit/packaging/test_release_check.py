"""What `helm test` asks: the program of its pod, with a made-up API server."""

import importlib.util
from types import ModuleType
from typing import Any

import pytest

from testbed.versions import CHECKOUT

pytestmark = pytest.mark.unit

TAKEN = {"kind": "BalancedSource", "metadata": {"name": "helm-test"}}


@pytest.fixture
def program() -> ModuleType:
    path = CHECKOUT / "charts/balanced-source/files/helm_test.py"
    spec = importlib.util.spec_from_file_location("helm_test", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def deployment(*, generation: int = 2, **status: int) -> dict[str, Any]:
    return {"metadata": {"generation": generation}, "spec": {"replicas": 2}, "status": status}


READY = deployment(observedGeneration=2, updatedReplicas=2, availableReplicas=2)


@pytest.mark.parametrize(
    ("found", "is_available"),
    [
        (READY, True),
        (deployment(), False),
        (deployment(observedGeneration=2, updatedReplicas=2, availableReplicas=1), False),
        (deployment(observedGeneration=2, updatedReplicas=1, availableReplicas=2), False),
        (deployment(observedGeneration=1, updatedReplicas=2, availableReplicas=2), False),
    ],
    ids=["ready", "new", "one is not ready", "one is of a former version", "not seen yet"],
)
def test_an_operator_is_ready_when_all_its_replicas_are(
    program: ModuleType, found: dict[str, Any], *, is_available: bool
) -> None:
    assert program.is_available(found) is is_available


def test_an_operator_that_is_not_ready_fails_the_test(
    program: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    moments = iter(range(0, 1000, 20))
    monkeypatch.setattr(program.time, "monotonic", lambda: next(moments))
    monkeypatch.setattr(program.time, "sleep", lambda _: None)
    monkeypatch.setattr(program, "ask", lambda *_: deployment())

    with pytest.raises(SystemExit, match=r"not ready after 60 s.*kubectl logs -n system deploy"):
        program.main("system", "demo", "jobs", "{}")


def test_the_manifest_is_asked_about_once_the_operator_is_ready(
    program: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[tuple[str, ...]] = []

    def ask(*question: str) -> Any:
        asked.append(question)
        return READY if len(question) == 1 else TAKEN

    monkeypatch.setattr(program, "ask", ask)
    program.main("system", "demo", "jobs", "{}")

    assert asked[0] == ("/apis/apps/v1/namespaces/system/deployments/demo",)
    assert asked[1][0].endswith("/namespaces/jobs/balancedsources?dryRun=All")
    assert capsys.readouterr().out.splitlines() == [
        "the operator demo is ready",
        "the API server takes BalancedSource helm-test",
    ]
