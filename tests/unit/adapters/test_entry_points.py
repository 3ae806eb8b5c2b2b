"""Connectors of other packages are found wherever Python would find them."""

import importlib.metadata
import sys
import zipfile
from collections.abc import Callable
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

import pytest

from balanced_source_adapters import registrations
from balanced_source_adapters.entry_points import may_others_register
from balanced_source_adapters.registrations import BUILT_IN, GROUP

pytestmark = pytest.mark.unit

OURS = "".join(f"{name} = {reference}\n" for name, reference in BUILT_IN.items())
TAPES = f"[console_scripts]\ntapes = tapes:main\n\n[{GROUP}]\ntapes = tapes.half:Tapes\n"
Layout = Callable[[Path], Path]


def _package(folder: Path, text: str, *, name: str = "tapes-1.0.dist-info") -> Path:
    (folder / name).mkdir(parents=True)
    (folder / name / "METADATA").write_text("Metadata-Version: 2.1\nName: tapes\nVersion: 1.0\n")
    (folder / name / "entry_points.txt").write_text(text)
    return folder


def _archive(place: Path) -> Path:
    place.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(place, "w") as archive:
        archive.writestr("tapes-1.0.dist-info/METADATA", "Name: tapes\nVersion: 1.0\n")
        archive.writestr("tapes-1.0.dist-info/entry_points.txt", TAPES)
    return place


def _without(folder: Path) -> Path:
    (folder / "numbers-1.0.dist-info").mkdir(parents=True)
    return folder


OTHERS: dict[str, Layout] = {
    "wheel": lambda folder: _package(folder, TAPES),
    "egg-info": lambda folder: _package(folder, TAPES, name="tapes.egg-info"),
    "archive": lambda folder: _archive(folder / "packages.zip"),
    "jar of another": lambda folder: _archive(folder / "tapes.jar"),
    "our kind, another class": lambda folder: _package(
        folder, f"[{GROUP}]\nkafka = tapes.half:Tapes\n"
    ),
    "after others": lambda folder: _package(folder, f"{TAPES}\n[console_scripts]\na = b:c\n"),
}
NO_OTHERS: dict[str, Layout] = {
    "nothing": lambda folder: folder,
    "no entry points": _without,
    "our own": lambda folder: _package(folder, f"[{GROUP}]\n{OURS}\n[console_scripts]\na = b:c\n"),
    "another group": lambda folder: _package(folder, "[other.connectors]\ntapes = tapes:Tapes\n"),
    "Spark's jar": lambda folder: _archive(folder / "spark-core_2.13-4.2.0.jar"),
    "Spark's Python": lambda folder: _archive(folder / "pyspark.zip"),
}


@pytest.mark.parametrize("layout", OTHERS)
def test_what_python_finds_is_looked_up(layout: str, tmp_path: Path) -> None:
    place = str(OTHERS[layout](tmp_path))

    found = importlib.metadata.Distribution.discover(path=[place])

    assert [entry.name for one in found for entry in one.entry_points.select(group=GROUP)] != []
    assert may_others_register(GROUP, BUILT_IN, path=["/missing", place])


@pytest.mark.parametrize("layout", NO_OTHERS)
def test_where_only_ours_are_nothing_is_looked_up(layout: str, tmp_path: Path) -> None:
    place = str(NO_OTHERS[layout](tmp_path))
    assert not may_others_register(GROUP, BUILT_IN, path=["/missing", place])


def test_the_folder_that_a_program_was_started_in_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(_package(tmp_path, TAPES))
    assert may_others_register(GROUP, BUILT_IN, path=[""])


def test_tools_that_pack_environments_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    class Packed(PathFinder):
        def find_distributions(self) -> Any:
            """Find what this tool has packed."""

    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Packed()])
    assert may_others_register(GROUP, BUILT_IN, path=[])


@pytest.mark.parametrize("name", ["tapes.egg", "deep/tapes-1.0-py3.11.egg"])
def test_an_egg_may_register_whatever_it_contains(name: str, tmp_path: Path) -> None:
    assert may_others_register(GROUP, BUILT_IN, path=[str(tmp_path / name)]) is True


@pytest.mark.parametrize(("may", "kinds"), [(True, [*BUILT_IN, "tapes"]), (False, [*BUILT_IN])])
def test_what_others_register_comes_beside_what_is_built_in(
    may: bool, kinds: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = importlib.metadata.EntryPoint("tapes", "tapes:Tapes", GROUP)
    looked_up: list[str] = []

    def entry_points(*, group: str) -> list[Any]:
        looked_up.append(group)
        return [entry]

    monkeypatch.setattr(importlib.metadata, "entry_points", entry_points)
    monkeypatch.setattr(registrations, "may_others_register", lambda *_: may)

    assert sorted(registrations.registered.__wrapped__().kinds) == sorted(kinds)
    assert looked_up == ([GROUP] if may else []), "a look-up takes long"
