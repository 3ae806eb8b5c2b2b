"""The parts of the real node that need no node."""

import json
from pathlib import Path

import pytest

from testbed.errors import MissingPrerequisiteError, TestbedError
from testbed.node import oci, system

pytestmark = pytest.mark.unit


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "state"
    monkeypatch.setattr(system, "STATE", folder)
    monkeypatch.setattr(system, "_RECORD", folder / "record.json")
    monkeypatch.setattr(system, "_LOCK", tmp_path / "lock")
    monkeypatch.setattr(system, "_sysctl", lambda name: tmp_path / name.replace("/", "."))
    monkeypatch.setattr(system, "_KUBELET", tmp_path / "kubelet")
    monkeypatch.setattr(system, "delete_namespace", lambda _: None)
    for name in system._SYSCTLS[:2]:
        system._sysctl(name).write_text("0\n")
    return folder


def test_there_is_one_node_per_machine(state: Path) -> None:
    with (
        system.only_node(),
        pytest.raises(TestbedError, match="runs on this machine already"),
        system.only_node(),
    ):
        pass
    assert not state.exists()


def test_the_next_run_reverts_changes_of_a_killed_one(state: Path, tmp_path: Path) -> None:
    system.record(namespace="closed", folders=[tmp_path / "data"])
    told = json.loads((state / "record.json").read_text())
    assert told["namespace"] == "closed"
    assert str(tmp_path / "data") in told["folders"]
    changed = system._sysctl(system._SYSCTLS[0])
    changed.write_text("1\n")
    with system.only_node():
        assert changed.read_text() == "0\n"
        assert not state.exists()


def test_without_root_the_command_names_alternatives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system.os, "geteuid", lambda: 1000)
    with pytest.raises(MissingPrerequisiteError, match="CLUSTER=process"):
        system.ensure_packages()


def test_the_key_of_an_image_covers_what_the_dockerfile_sees() -> None:
    ignore = (oci.CHECKOUT / ".dockerignore").read_text().splitlines()
    shown = [line.removeprefix("!") for line in ignore if line.startswith("!")]
    for path in shown:
        assert any(path == name or path.startswith(f"{name}/") for name in oci._CONTEXT), path
