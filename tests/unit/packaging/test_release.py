"""A dry run of a release.

Every file that names a version gets the new one, and nothing is written.
"""

import datetime as dt
import importlib.util
import tomllib
from types import ModuleType

import pytest
import yaml

from testbed.versions import CHECKOUT


@pytest.fixture(scope="module")
def release() -> ModuleType:
    spec = importlib.util.spec_from_file_location("release", CHECKOUT / ".ci" / "release.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_all_versions_are_changed_together(release: ModuleType) -> None:
    files = release.changed_files("9.8.7", dt.date(2030, 1, 2))
    project = tomllib.loads(files["pyproject.toml"])["project"]
    cargo = tomllib.loads(files["spark_app/native/Cargo.toml"])
    lock = {
        package["name"]: package
        for package in tomllib.loads(files["spark_app/native/Cargo.lock"])["package"]
    }
    chart = yaml.safe_load(files["charts/balanced-source/Chart.yaml"])

    assert (
        project["version"]
        == cargo["package"]["version"]
        == chart["version"]
        == chart["appVersion"]
        == "9.8.7"
    )
    assert lock["balanced-source-native"]["version"] == "9.8.7"
    assert project["optional-dependencies"]["native"] == ["balanced-source-native==9.8.7"]
    assert "## [Unreleased]\n\n## [9.8.7] - 2030-01-02\n" in files["CHANGELOG.md"]
    for name, text in files.items():  # nothing else is touched
        before = (CHECKOUT / name).read_text(encoding="utf-8").splitlines()
        assert len(set(text.splitlines()) - set(before)) <= 2, name


def test_a_dry_run_prints_the_plan_and_writes_nothing(
    release: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {name: (CHECKOUT / name).read_bytes() for name in release.PLACES}

    assert release.main(["9.8.7"]) == 0

    out = capsys.readouterr().out.splitlines()
    assert out[-1] == "dry run: nothing was changed; --publish does it"
    assert [line for line in out if line.startswith("git")][-1] == "git push origin HEAD v9.8.7"
    assert {name: (CHECKOUT / name).read_bytes() for name in release.PLACES} == before


@pytest.mark.parametrize("version", ["", "1", "v1.0.0", "1.0.0; rm", "01.0.0"])
def test_what_is_not_a_version_is_refused(
    release: ModuleType, version: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert release.main([version]) == 1
    assert "is not a version such as 0.2.0" in capsys.readouterr().err


def test_every_image_has_a_bill_of_materials_and_a_signature(release: ModuleType) -> None:
    commands = release.commands("9.8.7", "r")
    images = [command[-1] for command in commands if command[:2] == ["docker", "push"]]

    assert images == ["r/operator:9.8.7", "r/spark:4.2.0-9.8.7", "r/spark:4.3.0-9.8.7"]
    for image in images:
        assert any(command[:2] == ["syft", image] for command in commands)
        assert ["cosign", "sign", "--yes", image] in commands
