"""The files of docs/writing-a-connector.md: the connector from its wheel, on real Spark."""

import subprocess
import sys
from pathlib import Path

import pytest

from support.connector_page import files
from support.wheels import install
from testbed.versions import CHECKOUT

PACKAGED = ("lines_connector.py", "pyproject.toml")


@pytest.mark.timeout(600)
def test_every_file_runs_beside_the_installed_wheel(tmp_path: Path) -> None:
    project, programs = tmp_path / "project", tmp_path / "programs"
    for folder in (project, programs):
        folder.mkdir()
    for name, code in files().items():
        (project if name in PACKAGED else programs).joinpath(name).write_text(code)
    installed = install(tmp_path / "wheels", CHECKOUT, project)

    def run(*command: str | Path) -> None:
        done = subprocess.run(  # noqa: S603 - the page's own programs
            command,
            env={**installed.environment, "TMPDIR": str(tmp_path)},
            cwd=programs,
            capture_output=True,
            text=True,
            check=False,
            timeout=500,
        )
        assert done.returncode == 0, f"{done.stdout[-3000:]}{done.stderr[-3000:]}"

    assert {file.name for file in installed.site.glob("*lines*")} == {
        "lines_connector.py",
        "lines_connector-1.0.0.dist-info",
    }
    run(installed.python, "read_lines.py")
    run(installed.python, "try_it.py")
    # pytest is in the environment of the tests only
    run(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_lines.py")

    assert list(tmp_path.glob("tmp*/out/*.parquet"))
