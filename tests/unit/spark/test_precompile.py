"""Bytecode in archives of Python sources: used by who has the same version, ignored by others."""

import builtins
import importlib.util
import os
import zipfile
import zipimport
from pathlib import Path
from typing import Any

import pytest

from balanced_source_spark.precompile import add_bytecode, archives, is_compiled


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "some.zip"
    with zipfile.ZipFile(path, "w") as opened:
        opened.writestr("some/__init__.py", "from some.answer import ANSWER\n")
        opened.writestr("some/answer.py", "ANSWER = 42\n")
        opened.writestr("some/data.txt", "no code\n")
    return path


def answer(archive: Path) -> Any:
    names: dict[str, Any] = {}
    exec(zipimport.zipimporter(str(archive / "some")).get_code("answer"), names)  # noqa: S102 - our own two lines
    return names["ANSWER"]


def fail(*_: object, **__: object) -> None:
    raise AssertionError("sources were compiled")


def test_sources_with_bytecode_are_not_compiled(archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not is_compiled(archive)
    assert add_bytecode(archive) == 2

    monkeypatch.setattr(builtins, "compile", fail)

    assert is_compiled(archive)
    assert answer(archive) == 42


def test_the_sources_stay_for_tracebacks_and_for_other_versions(archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "MAGIC_NUMBER", b"old\n")
    add_bytecode(archive)

    assert zipimport.zipimporter(str(archive / "some")).get_source("answer") == "ANSWER = 42\n"
    assert answer(archive) == 42


def test_an_archive_that_others_share_is_left_alone(archive: Path, tmp_path: Path) -> None:
    other = tmp_path / "cached.zip"
    os.link(archive, other)

    add_bytecode(archive)

    assert not is_compiled(other)


def test_the_archives_of_pyspark_are_found_and_compiled_here() -> None:
    found = archives()

    assert [path.name.split("-")[0] for path in found] == ["py4j", "pyspark.zip"]
    assert all(is_compiled(path) for path in found), "`make install` does it"
