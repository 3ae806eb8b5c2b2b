"""The connector of docs/writing-a-connector.md, from a bare environment's wheel, on real Spark."""

import re
import subprocess
from pathlib import Path

import pytest

from support.wheels import install
from testbed.versions import CHECKOUT

PAGE = CHECKOUT / "docs" / "writing-a-connector.md"
BLOCK = re.compile(r"^```(python|toml)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NOT_PACKAGED = ("Trying it", "Testing it")
PROGRAM = "SparkSession"


def blocks(language: str) -> list[str]:
    """Code of the page that belongs to the connector or to the program that uses it."""
    sections = re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE)
    kept = (text for text in sections if not text.startswith(NOT_PACKAGED))
    return [code for text in kept for kind, code in BLOCK.findall(text) if kind == language]


@pytest.mark.timeout(600)
def test_every_block_runs_from_an_installed_wheel(tmp_path: Path) -> None:
    (description,) = blocks("toml")
    *parts, program = blocks("python")
    assert PROGRAM in program
    project, folder = tmp_path / "project", tmp_path / "folder"
    for made in (project, folder):
        made.mkdir()
    (project / "pyproject.toml").write_text(description)
    (project / "lines_connector.py").write_text("\n".join(parts))
    for number in range(5):
        (folder / f"{number}.txt").write_text("".join(f"{number}-{line}\n" for line in range(300)))
    (tmp_path / "program.py").write_text(f"folder = {str(folder)!r}\n{program}")
    installed = install(tmp_path / "wheels", CHECKOUT, project)

    done = subprocess.run(  # noqa: S603 - the page's own program
        [installed.python, tmp_path / "program.py"],
        env=dict(installed.environment),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )

    assert done.returncode == 0, done.stderr[-3000:]
    assert list((folder / "out").glob("*.parquet"))
