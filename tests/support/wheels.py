"""The product and the sample connector as users get them.

Wheels, in an environment without this tree.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from support import journal_faults
from testbed.cache import Cache
from testbed.images import spark_image
from testbed.process_node.images import ProcessImage
from testbed.venvs import ensure_venv
from testbed.versions import CHECKOUT, SPARK

SAMPLE = CHECKOUT / "examples" / "connector"
BARE_SPARK = "4.3.0"
"""Its environment in the cache holds dependencies and nothing of this project."""


@dataclass(frozen=True)
class Installed:
    """Wheels, unpacked beside the dependencies.

    Attributes:
        python: of the environment.
        site: folder with the wheels' content.
        more: further variables of its processes.
    """

    python: Path
    site: Path
    more: Mapping[str, str] = field(default_factory=dict)

    @property
    def environment(self) -> Mapping[str, str]:
        """Variables of a process that sees the wheels and not the tree."""
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        local = {"PYSPARK_PYTHON": str(self.python), "SPARK_LOCAL_IP": "127.0.0.1"}
        return {**kept, **local, "PYTHONPATH": str(self.site), **self.more}


def install(folder: Path, *projects: Path) -> Installed:
    """Build wheels of projects, and install them into a folder of their own."""
    uv = _run(str(CHECKOUT / ".ci" / "venv"), "--uv").strip()
    wheels, site = folder / "wheels", folder / "site"
    for project in projects:
        build = ("build", "--quiet", "--wheel", "--no-build-isolation", "--python", sys.executable)
        _run(uv, *build, "--out-dir", str(wheels), str(project))
    python = ensure_venv(BARE_SPARK) / "bin" / "python"
    found = map(str, sorted(wheels.glob("*.whl")))
    _run(uv, "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", str(site), *found)
    return Installed(python=python, site=site)


def with_faults(installed: Installed, folder: Path) -> Installed:
    """Return the same for processes with faults of `support.journal_faults`, named by files."""
    shutil.copy(str(journal_faults.__file__), installed.site / "sitecustomize.py")
    return replace(installed, more={**installed.more, "FAULTS": str(folder)})


def image(installed: Installed, cache: Cache | None = None) -> ProcessImage:
    """Return the Spark image of the process node with the wheels instead of the checkout."""
    kept = cache or Cache()
    plain = spark_image(ensure_venv(SPARK[0], kept), kept)
    site = str(installed.site)
    env = {**plain.env, "PYTHONPATH": site, **installed.more}
    return replace(plain, env=env, visible=(*plain.visible, site))


def _run(*command: str) -> str:
    # Our own commands
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 0, done.stderr
    return done.stdout
