"""The Java run-time environment that Kafka and Spark need."""

import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

from testbed.errors import MissingPrerequisiteError
from testbed.versions import MINIMUM_JAVA

_INSTALL = (
    f"Install Java {MINIMUM_JAVA} or 21 (Debian and Ubuntu: `apt-get install "
    "openjdk-17-jre-headless`) and put it on PATH, or set JAVA_HOME."
)

_OPTIONS = "JDK_JAVA_OPTIONS"


@cache
def java_home() -> Path:
    """The folder of a Java that is new enough: `$JAVA_HOME`, else that of `java` on PATH.

    Raises:
        MissingPrerequisiteError: there is none, or it is too old.
    """
    own = os.environ.get("JAVA_HOME")
    program = shutil.which("java", path=f"{own}/bin" if own else None)
    if program is None:
        raise MissingPrerequisiteError(f"Java is missing. {_INSTALL}")
    version = _version(program)
    if version < MINIMUM_JAVA:
        raise MissingPrerequisiteError(f"{program} is Java {version}, too old. {_INSTALL}")
    return Path(program).resolve().parent.parent


def java() -> Path:
    """The `java` program."""
    return java_home() / "bin" / "java"


def jvm_environment(*options: str) -> dict[str, str]:
    """For programs with an environment of their own.

    What this process was told for all JVMs, and further options.
    """
    told = " ".join([*os.environ.get(_OPTIONS, "").split(), *options])
    return {_OPTIONS: told} if told else {}


def java_version(program: Path | str) -> str:
    """Return what `java -version` prints: version and build."""
    return subprocess.run(  # noqa: S603 - found on PATH or in JAVA_HOME
        [program, "-version"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, _OPTIONS: ""},
    ).stderr


def _version(program: str) -> int:
    found = re.search(r'version "(?:1\.)?(\d+)', java_version(program))
    return int(found[1]) if found else 0
