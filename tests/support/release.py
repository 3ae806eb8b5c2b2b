"""A release of this project as it was.

Its files from the clone's history, and an environment by its own locks.
"""

import dataclasses
import os
import sys
import tarfile
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from subprocess import run
from typing import Final

from testbed.cache import Cache, content_key
from testbed.commands import nice
from testbed.commands import run as run_command
from testbed.errors import BuildError, CommandError, MissingPrerequisiteError
from testbed.images import spark_image
from testbed.process_node.images import ProcessImage
from testbed.progress import QUIET, Progress
from testbed.versions import CHECKOUT

_LOCK: Final = "dev-spark42"


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """A version and the commit that it was made from."""

    version: str
    commit: str


FIRST: Final = Release(version="0.1.0", commit="25aecab676bdf6807d498b51ce56d467b0f8002f")


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledRelease:
    """A release, unpacked.

    Attributes:
        release: which one.
        tree: its files.
        venv: environment with the dependencies that it was locked to.
    """

    release: Release
    tree: Path
    venv: Path

    @property
    def chart(self) -> Path:
        """Its Helm chart."""
        return self.tree / "charts" / "balanced-source"

    def operator_image(self) -> ProcessImage:
        """Return the image of its operator for the process node."""
        command = "from balanced_source_operator.cli import app; app()"
        return ProcessImage(
            env={"PYTHONPATH": self._sources},
            entrypoint=(str(self.venv / "bin" / "python"), "-c", command),
            path=(str(self.venv / "bin"),),
            visible=(str(self.tree), str(self.venv)),
        )

    def spark_image(self, cache: Cache) -> ProcessImage:
        """Return the image of its packaged application for the process node."""
        made = spark_image(self.venv, cache)
        recipe = self.tree / "spark_app" / "image"
        own = {
            "/opt/balanced-source": str(recipe),
            "/opt/entrypoint.sh": str(recipe / "entrypoint.sh"),
        }
        return dataclasses.replace(
            made,
            binds={**made.binds, **own},
            env={**made.env, "PYTHONPATH": self._sources},
            visible=(*made.visible, str(self.tree)),
        )

    @property
    def _sources(self) -> str:
        return os.pathsep.join(str(self.tree / part / "src") for part in ("operator", "spark_app"))


def install(
    release: Release, cache: Cache | None = None, progress: Progress = QUIET
) -> InstalledRelease:
    """Unpack a release and install what it depends on; both are kept in the cache.

    Raises:
        MissingPrerequisiteError: this clone does not have the commit.
        BuildError: its dependencies cannot be installed.
    """
    kept = cache or Cache()
    name = f"release-{release.version}"
    tree = kept.artefact(name, release.commit[:16], lambda target: _unpack(release, target))
    key = content_key(sys.version, tree / ".ci" / "locks" / f"{_LOCK}.txt", tree / ".ci" / "venv")
    with progress.step(f"install what release {release.version} depends on"):
        venv = kept.artefact(f"venv-{name}", key, lambda target: _install(tree, target))
    return InstalledRelease(release=release, tree=tree, venv=venv)


def _unpack(release: Release, target: Path) -> None:
    done = run(  # noqa: S603 - our own command
        ["git", "-C", str(CHECKOUT), "archive", release.commit],  # noqa: S607 - git is on the PATH
        capture_output=True,
        check=False,
    )
    if done.returncode:
        raise MissingPrerequisiteError(
            f"this clone does not have commit {release.commit[:7]}, which release {release.version}"
            " was made from. If it is shallow, run `git fetch --unshallow`, or clone without"
            " --depth"
        )
    with tarfile.open(fileobj=BytesIO(done.stdout)) as archive:
        archive.extractall(target, filter="data")


def _install(tree: Path, target: Path) -> None:
    try:
        run_command(nice([tree / ".ci" / "venv", target, _LOCK]), env={"PYTHON": sys.executable})
    except CommandError as error:
        raise BuildError(
            f"cannot install {_LOCK} of the release: {error.stderr[-3000:]}"
        ) from error
