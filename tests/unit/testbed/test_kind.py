"""Which commands the kind provider gives; no engine is at hand."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml

from testbed import kind
from testbed.choice import KINDS, new_cluster
from testbed.errors import TestbedError
from testbed.versions import CHECKOUT

pytestmark = pytest.mark.unit


class Commands:
    """Remembers commands, and answers those that are asked for something."""

    def __init__(self, answers: dict[str, str] | None = None) -> None:
        self.given: list[list[str]] = []
        self._answers = answers or {}

    def __call__(self, argv: Sequence[str | Path]) -> str:
        words = [str(word) for word in argv]
        self.given.append([Path(words[0]).name, *words[1:]])
        return next(
            (answer for part, answer in self._answers.items() if part in " ".join(words)), ""
        )


@pytest.fixture(autouse=True)
def _programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kind, "find_program", lambda name, _: Path("/usr/bin") / name)


def cluster(
    tmp_path: Path, commands: Commands, versions: tuple[str, ...] = ("4.2.0",)
) -> kind.KindCluster:
    return kind.KindCluster(
        tmp_path / "run", share=tmp_path / "share", spark_versions=versions, run_command=commands
    )


def test_both_images_are_built_from_the_dockerfile(tmp_path: Path) -> None:
    commands = Commands()
    cluster(tmp_path, commands, ("4.2.0", "4.3.0")).build_images()
    build = ["docker", "build", "--target"]
    assert commands.given == [
        [*build, "operator", "--tag", "balanced-source/operator:dev", str(CHECKOUT)],
        [
            *(*build, "spark", "--tag", "balanced-source/spark:4.2.0"),
            *("--build-arg=SPARK_VERSION=4.2.0", str(CHECKOUT)),
        ],
        [
            *(*build, "spark", "--tag", "balanced-source/spark:4.3.0"),
            *("--build-arg=SPARK_VERSION=4.3.0", str(CHECKOUT)),
        ],
    ]


def test_the_cluster_has_the_share_and_the_images(tmp_path: Path) -> None:
    commands = Commands()
    made = cluster(tmp_path, commands)
    made.create()
    create, load = commands.given
    assert create[:5] == ["kind", "create", "cluster", "--name", "balanced-source"]
    config = yaml.safe_load(Path(create[create.index("--config") + 1]).read_text())
    share = str(tmp_path / "share")
    assert config["nodes"][0]["extraMounts"] == [{"hostPath": share, "containerPath": share}]
    assert load == [
        *("kind", "load", "docker-image", "--name", "balanced-source"),
        *("balanced-source/operator:dev", "balanced-source/spark:4.2.0"),
    ]


def test_pods_reach_brokers_at_the_gateway(tmp_path: Path) -> None:
    networks = [{"IPAM": {"Config": [{"Gateway": "fc00::1"}, {"Gateway": "172.18.0.1"}]}}]
    assert (
        cluster(tmp_path, Commands({"network inspect": json.dumps(networks)})).gateway()
        == "172.18.0.1"
    )
    with pytest.raises(TestbedError, match="no IPv4 gateway"):
        cluster(
            tmp_path, Commands({"network inspect": json.dumps([{"IPAM": {"Config": []}}])})
        ).gateway()


def test_a_stopped_cluster_is_deleted(tmp_path: Path) -> None:
    commands = Commands()
    cluster(tmp_path, commands).stop()
    assert commands.given == [["kind", "delete", "cluster", "--name", "balanced-source"]]


def test_an_unknown_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TestbedError, match=", ".join(KINDS)):
        new_cluster("minikube", tmp_path / "run", share=tmp_path)
