"""The documentation site of several versions, built as for a release in a separate repository."""

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from testbed.versions import CHECKOUT

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(900)]

Git = Callable[..., str]


@pytest.fixture
def git(tmp_path: Path) -> Git:
    """Runs git in a repository with what the site is built from."""

    def run(*arguments: str) -> str:
        command = ["git", "-c", "user.name=test", "-c", "user.email=test@localhost", *arguments]
        done = subprocess.run(  # noqa: S603 - git
            command, cwd=tmp_path, check=True, capture_output=True, text=True
        )
        return done.stdout

    for folder in (".ci", "docs"):
        shutil.copytree(
            CHECKOUT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__")
        )
    for name in ("mkdocs.yml", ".gitignore"):
        shutil.copy(CHECKOUT / name, tmp_path)
    run("init", "--quiet", "--initial-branch=main")
    run("config", "user.name", "test")
    run("config", "user.email", "test@localhost")
    run("add", "--all")
    run("commit", "--quiet", "--message=documentation")
    return run


def test_each_version_keeps_its_pages(git: Git, tmp_path: Path) -> None:
    def publish(version: str) -> None:
        # Our own program
        subprocess.run([tmp_path / ".ci" / "site-version", version], check=True)  # noqa: S603

    publish("0.1.0")
    with (tmp_path / "docs" / "glossary.md").open("a", encoding="utf-8") as page:
        page.write("\nA sentence of the second version.\n")
    publish("0.2.0")
    publish("0.2.1")  # replaces 0.2

    shown = [
        (one["version"], one["title"], one["aliases"])
        for one in json.loads(git("show", "gh-pages:versions.json"))
    ]
    assert shown == [("0.2", "0.2.1", ["latest"]), ("0.1", "0.1.0", [])]
    has_it = {
        folder: "A sentence of the second version."
        in git("show", f"gh-pages:{folder}/glossary/index.html")
        for folder in ("0.1", "0.2", "latest")
    }
    assert has_it == {"0.1": False, "0.2": True, "latest": True}
    assert "latest/" in git("show", "gh-pages:index.html")
    assert git("status", "--porcelain") == " M docs/glossary.md\n", "the working tree was touched"
