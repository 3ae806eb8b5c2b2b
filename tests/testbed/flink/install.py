"""Flink from its Python wheel and from Maven, in the cache.

Nothing of it is imported or locked by the project.
"""

import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

import yaml

from testbed.cache import Cache, content_key
from testbed.commands import nice, run
from testbed.errors import BuildError, CommandError
from testbed.jars import ensure_jars
from testbed.progress import Progress
from testbed.versions import CHECKOUT, FLINK, TESTBED

WHEEL = TESTBED / "flink" / "requirements.txt"


@dataclass(frozen=True, slots=True)
class Flink:
    """An installation.

    Attributes:
        libraries: of the wheel.
        further: the Kafka connector and the SQL gateway.
    """

    libraries: Path
    further: Path

    @property
    def class_path(self) -> str:
        """For `java -cp`."""
        return f"{self.libraries}/*:{self.further}/*"

    def jvm_flags(self) -> list[str]:
        """What Flink's own scripts give every JVM: the modules that it must open."""
        with zipfile.ZipFile(self.libraries / f"flink-dist-{FLINK}.jar") as jar:
            options = yaml.safe_load(jar.read("config.yaml"))["env"]["java"]["opts"]["all"]
        return str(options).split()


def ensure_flink(cache: Cache | None = None, progress: Progress | None = None) -> Flink:
    """The installation, fetched if it is not in the cache (400 MB).

    Raises:
        BuildError: a package could not be fetched, or is not the pinned one.
        MissingPrerequisiteError: there is no Maven.
    """
    cache, progress = cache or Cache(), progress or Progress()

    def install(target: Path) -> None:
        with progress.step(f"install Flink {FLINK}"):
            _install(target)

    folder = cache.artefact("flink", content_key(WHEEL), install)
    return Flink(folder / "pyflink" / "lib", ensure_jars("flink", cache, progress))


def _install(target: Path) -> None:
    own = ["--quiet", "--no-deps", "--require-hashes", "--python", sys.executable]
    try:
        uv = run([CHECKOUT / ".ci" / "venv", "--uv"], env={"PYTHON": sys.executable}).strip()
        run(nice([uv, "pip", "install", *own, "--target", target, "--requirement", WHEEL]))
    except CommandError as error:
        raise BuildError(f"cannot install Flink: {error.stderr[-3000:]}") from error
