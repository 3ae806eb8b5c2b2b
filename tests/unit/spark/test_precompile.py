"""A folder with bytecode in the place of an archive of Python sources."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from balanced_source_spark.precompile import archives, is_compiled, unpack

FROM_BYTECODE = (
    "import some, some.answer as a; print(a.ANSWER, a.__cached__, a.ask.__code__.co_filename)"
)


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "some.zip"
    with zipfile.ZipFile(path, "w") as opened:
        opened.writestr("some/__init__.py", "from some.answer import ANSWER\n")
        opened.writestr("some/answer.py", "ANSWER = 42\n\ndef ask():\n    return ANSWER\n")
        opened.writestr("some/data.txt", "no code\n")
        opened.writestr("some/newer.py", "this is the syntax of a version to come\n")
    return path


def imported(archive: Path) -> list[str]:
    """What a fresh interpreter with the archive on its path prints."""
    command = [sys.executable, "-c", FROM_BYTECODE]
    environment = {**os.environ, "PYTHONPATH": str(archive), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)  # noqa: S603
    return done.stdout.split()


def test_the_folder_takes_the_place_of_the_archive(archive: Path) -> None:
    assert not is_compiled(archive)
    assert unpack(archive) == 3

    answer, cached, filename = imported(archive)

    assert is_compiled(archive)
    assert answer == "42"
    assert Path(cached).is_relative_to(archive)
    assert Path(cached).exists()
    assert filename == str(archive / "some" / "answer.py")  # in tracebacks
    assert not (
        archive / "some" / "__pycache__" / Path(cached).name.replace("answer", "newer")
    ).exists()
    assert (archive / "some" / "data.txt").read_text() == "no code\n"


def test_bytecode_is_used_without_a_look_at_the_source(archive: Path) -> None:
    unpack(archive)
    (archive / "some" / "answer.py").write_text("ANSWER = 43\n")

    assert imported(archive)[0] == "42"


def test_files_of_an_interrupted_run_are_replaced(archive: Path) -> None:
    archive.with_suffix(".partial").mkdir()
    (archive.with_suffix(".partial") / "rest").touch()

    unpack(archive)

    assert not (archive / "rest").exists()
    assert not archive.with_suffix(".partial").exists()


def test_an_archive_that_others_share_is_left_alone(archive: Path, tmp_path: Path) -> None:
    other = tmp_path / "cached.zip"
    os.link(archive, other)

    unpack(archive)

    assert zipfile.is_zipfile(other)
    assert not is_compiled(other)


def test_the_archives_of_pyspark_are_found_and_compiled_here() -> None:
    found = archives()

    assert [path.name.split("-")[0] for path in found] == ["py4j", "pyspark.zip"]
    assert all(is_compiled(path) for path in found), "`make install` does it"
