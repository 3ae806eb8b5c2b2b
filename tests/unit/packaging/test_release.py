"""A dry run of a release.

Every file that names a version gets the new one, and nothing is written.
"""

import datetime as dt
import importlib
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from testbed.versions import CHECKOUT


@pytest.fixture(scope="module")
def release() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(str(CHECKOUT / ".ci"))
        yield importlib.import_module("release")


@pytest.fixture(scope="module")
def addresses(release: ModuleType) -> ModuleType:
    return release.addresses  # type: ignore[no-any-return]


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
        added = set(text.splitlines()) - set(before)
        assert len(added) <= 2 or all("9.8.7" in line for line in added), name


def test_pages_name_the_images_and_wheels_of_this_version(release: ModuleType) -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    found = [match for text in release.pages().values() for match in release.NAMED.finditer(text)]

    assert len(found) >= 8
    assert {match[0].removeprefix(match[1]) for match in found} == {project["version"]}


def test_a_dry_run_prints_the_plan_and_writes_nothing(
    release: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {name: (CHECKOUT / name).read_bytes() for name in release.PLACES}

    assert release.main(["9.8.7"]) == 0

    out = capsys.readouterr().out.splitlines()
    assert out[-1] == "dry run: nothing was changed; --publish does it"
    assert [line for line in out if line.startswith("git")][
        -1
    ] == "git push origin HEAD gh-pages v9.8.7"
    assert {name: (CHECKOUT / name).read_bytes() for name in release.PLACES} == before


@pytest.mark.parametrize("failing", ["git tag", "docker push", "git push"])
def test_a_release_continues_where_a_former_try_failed(
    failing: str,
    release: ModuleType,
    addresses: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """What was committed and tagged stays as it is."""
    somewhere = addresses.Addresses(
        repository="https://code.test/bs", site="https://bs.test", registry="images.test/bs"
    )
    monkeypatch.setattr(addresses, "read", lambda: somewhere)
    monkeypatch.setattr(release, "ROOT", repository(release, tmp_path))
    tried, really = list[str](), subprocess.run

    def run(command: list[str], **more: Any) -> Any:
        if "capture_output" in more:
            return really(command, **more)  # what it asks git
        tried.append(" ".join(command))
        if tried[-1].startswith(failing) and len(tried) == len(set(tried)):
            raise subprocess.CalledProcessError(1, command)
        if command[:2] in (["git", "commit"], ["git", "tag"]):
            return really([part for part in command if part != "--sign"], **more)
        return None

    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(subprocess.CalledProcessError):
        release.main(["9.8.7", "--publish"])
    before = len(tried)

    assert release.main(["9.8.7", "--publish"]) == 0
    again = tried[before:]
    assert (
        again[0] == tried[before - 1] if failing == "git tag" else again[0].startswith(".ci/site")
    )
    assert again[-1] == "git push origin HEAD gh-pages v9.8.7"
    subjects = release._output("git", "log", "--format=%s").splitlines()
    assert subjects == ["Release 9.8.7", "begin"]
    assert release._output("git", "tag").split() == ["v9.8.7"]


def repository(release: ModuleType, folder: Path) -> Path:
    """Make a repository with the files that name a version."""
    for name in (*release.PLACES, *release.pages(), "CHANGELOG.md"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes((CHECKOUT / name).read_bytes())
    for command in (
        ["init", "--quiet"],
        ["config", "user.email", "someone@example.org"],
        ["config", "user.name", "Someone"],
        ["add", "--all"],
        ["commit", "--quiet", "--message", "begin"],
    ):
        subprocess.run(["git", *command], cwd=folder, check=True)  # noqa: S603, S607
    return folder


@pytest.mark.parametrize("version", ["", "1", "v1.0.0", "1.0.0; rm", "01.0.0"])
def test_an_invalid_version_is_rejected(
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


def test_the_site_of_the_version_is_committed_before_anything_is_pushed(
    release: ModuleType,
) -> None:
    commands = release.commands("9.8.7", "r")
    pushing = [number for number, command in enumerate(commands) if "push" in command]

    assert commands.index([".ci/site-version", "9.8.7"]) < min(pushing)


def test_nothing_is_published_under_placeholders(
    release: ModuleType,
    addresses: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    somewhere = addresses.Addresses(
        repository="https://code.test/bs",
        site="https://docs.example.org/bs",
        registry="images.test/bs",
    )
    monkeypatch.setattr(addresses, "read", lambda: somewhere)

    assert release.main(["9.8.7", "--publish"]) == 1
    assert (
        "set the project's addresses in .ci/addresses.toml first: https://docs.example.org/bs"
        in capsys.readouterr().err
    )
    assert release.main(["9.8.7"]) == 0
    assert "docker push images.test/bs/operator:9.8.7" in capsys.readouterr().out


def test_all_addresses_come_from_one_file(addresses: ModuleType) -> None:
    for name, text in addresses.changed_files(addresses.read()).items():
        assert text == (CHECKOUT / name).read_text(encoding="utf-8"), f"{name}: run make generate"


def test_other_addresses_reach_both_wheels_the_chart_and_the_site(addresses: ModuleType) -> None:
    elsewhere = addresses.Addresses(
        repository="https://code.test/bs", site="https://bs.test", registry="images.test"
    )
    files = addresses.changed_files(elsewhere)
    wheels = [
        tomllib.loads(files[name])["project"]["urls"]
        for name in files
        if name.endswith("pyproject.toml")
    ]

    assert (
        wheels
        == [
            {
                "Homepage": "https://bs.test/",
                "Documentation": "https://bs.test/latest/",
                "Source": "https://code.test/bs",
                "Issues": "https://code.test/bs/issues",
                "Changelog": "https://code.test/bs/blob/main/CHANGELOG.md",
            }
        ]
        * 2
    )
    chart = yaml.safe_load(files["charts/balanced-source/Chart.yaml"])
    assert (chart["home"], chart["sources"]) == ("https://bs.test/", ["https://code.test/bs"])
    site = "site_url: !ENV [BALANCED_SOURCE_DOCUMENTATION_URL, 'https://bs.test/']\n"
    assert site in files["mkdocs.yml"]
    assert not [name for name, text in files.items() if "example.org" in text]
