"""An environment as a user has it: pip, the product's dependencies, and nothing of this project.

Its pip has no package index. It finds dependencies as installed, and everything else in folders.
"""

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from testbed.versions import CHECKOUT, OURS

_OURS: Final = ("balanced_source", "_balanced_source", "pyspark_balanced")
"""First letters of what an environment for this project's development has of the project."""

_NATIVE: Final = f"Metadata-Version: 2.1\nName: balanced-source-native\nVersion: {OURS}\n"


@dataclass(frozen=True)
class BareEnvironment:
    """A virtual environment; see the module.

    Attributes:
        folder: of the environment.
        temporary: folder for temporary files of its programs.
    """

    folder: Path
    temporary: Path

    @property
    def variables(self) -> Mapping[str, str]:
        """Variables of a shell in which the environment is active."""
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        return {
            **kept,
            "VIRTUAL_ENV": str(self.folder),
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "TMPDIR": str(self.temporary),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PIP_NO_INDEX": "1",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            # What builds a wheel is a dependency here: pip cannot get it for an isolated build.
            "PIP_NO_BUILD_ISOLATION": "0",
        }

    def run(self, command: str, *, cwd: Path, text: str = "") -> str:
        """Run a command line as a shell does, and return what it prints.

        Raises:
            AssertionError: it fails; shows what it has printed.
        """
        done = subprocess.run(  # noqa: S603 - commands of our own page
            ["/bin/sh", "-e", "-c", command],
            input=text,
            env=self.variables,
            cwd=cwd,
            capture_output=True,
            text=True,
            check=False,
            timeout=500,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
        return done.stdout


def make(folder: Path) -> BareEnvironment:
    """Return a new environment with the dependencies of this one."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)  # noqa: S603
    made = BareEnvironment(folder, folder.parent)
    site, dependencies = next(folder.glob("lib/python3*/site-packages")), folder / "dependencies"
    dependencies.mkdir()
    for path in next(Path(sys.prefix).glob("lib/python3*/site-packages")).iterdir():
        # Files .pth are not read there, so development versions of the project stay out.
        if not path.name.startswith(_OURS):
            (dependencies / path.name).symlink_to(path)
    (site / "dependencies.pth").write_text(f"{dependencies}\n")
    # Its wheel is compiled, and has tests of its own.
    native = dependencies / f"balanced_source_native-{OURS}.dist-info"
    native.mkdir()
    (native / "METADATA").write_text(_NATIVE)
    _script(folder / "bin" / "pytest", "from pytest import console_main as main")
    return made


def build(folder: Path, *projects: Path) -> Path:
    """Build the wheels of projects into a folder, and return it."""
    uv = subprocess.run(  # noqa: S603
        [str(CHECKOUT / ".ci" / "venv"), "--uv"], capture_output=True, text=True, check=True
    ).stdout.strip()
    options = ("--quiet", "--wheel", "--no-build-isolation", "--python", sys.executable)
    for project in projects:
        subprocess.run(  # noqa: S603
            [uv, "build", *options, "--out-dir", str(folder), str(project)], check=True
        )
    return folder


def _script(path: Path, importing: str) -> None:
    """Write a program of a package that is no wheel of this environment."""
    path.write_text(f"#!{path.parent / 'python'}\nimport sys\n{importing}\nsys.exit(main())\n")
    path.chmod(0o755)
