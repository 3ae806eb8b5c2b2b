"""Archives of classes: made once per environment, and again when its jars change."""

import os
from pathlib import Path

import pytest

from testbed.cache import Cache
from testbed.class_data import spark_driver_options
from testbed.errors import BuildError

_PYTHON = """#!/bin/sh
echo run >> {runs}
for option in $SPARK_SUBMIT_OPTS; do
    case "$option" in -XX:ArchiveClassesAtExit=*) {archive} ;; esac
done
"""


@pytest.fixture
def venv(tmp_path: Path) -> Path:
    """An environment whose Python writes the archive that it is asked for."""
    return _environment(tmp_path, archive='touch "${option#*=}"')


def _environment(folder: Path, *, archive: str) -> Path:
    venv = folder / "venv"
    python, jar = (
        venv / "bin" / "python",
        venv / "lib/python3.11/site-packages/pyspark/jars/spark.jar",
    )
    for file in (python, jar):
        file.parent.mkdir(parents=True)
    python.write_text(_PYTHON.format(runs=folder / "runs", archive=archive))
    python.chmod(0o755)
    jar.write_text("classes")
    return venv


def test_an_archive_is_made_once(venv: Path, tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")

    first, second = spark_driver_options(venv, cache), spark_driver_options(venv, cache)

    assert first == second
    assert Path(first[0].removeprefix("-XX:SharedArchiveFile=")).is_file()
    assert (tmp_path / "runs").read_text() == "run\n"


def test_jars_with_another_time_need_another_archive(venv: Path, tmp_path: Path) -> None:
    """The JVM refuses an archive whose jars have another time or size."""
    cache = Cache(tmp_path / "cache")
    before = spark_driver_options(venv, cache)
    os.utime(next(venv.rglob("*.jar")), (1, 1))

    assert spark_driver_options(venv, cache) != before


def test_a_run_without_an_archive_is_an_error(tmp_path: Path) -> None:
    venv = _environment(tmp_path, archive="true")

    with pytest.raises(BuildError, match="without an archive"):
        spark_driver_options(venv, Cache(tmp_path / "cache"))
