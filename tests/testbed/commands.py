"""Running a program to its end, and finding programs that the machine must bring."""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from testbed.errors import CommandError, MissingPrerequisiteError


def run(
    argv: Sequence[str | Path],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: str | None = None,
    timeout: float | None = None,
) -> str:
    """Run a program and return its standard output.

    Args:
        argv: program and arguments; no shell is involved.
        cwd: its working directory.
        env: added to this process's environment.
        stdin: its standard input; empty if None.
        timeout: seconds.

    Raises:
        CommandError: it ended with another exit code than 0.
        subprocess.TimeoutExpired: it took too long and was killed.
    """
    words = [str(word) for word in argv]
    done = subprocess.run(  # noqa: S603 - the testbed runs what it has built itself
        words,
        cwd=cwd,
        env={**os.environ, **(env or {})},
        input=stdin or "",
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    if done.returncode:
        raise CommandError(
            " ".join([Path(words[0]).name, *words[1:3]]),
            done.returncode,
            done.stderr or done.stdout,
        )
    return done.stdout


def find_program(name: str, how_to_install: str) -> Path:
    """The path of a program on PATH.

    Raises:
        MissingPrerequisiteError: it is not there; the message says how to install it.
    """
    if found := shutil.which(name):
        return Path(found)
    raise MissingPrerequisiteError(f"`{name}` is missing. {how_to_install}")


def nice(argv: Sequence[str | Path]) -> list[str | Path]:
    """The command at low priority, so that a build leaves the machine usable."""
    prefix: list[str | Path] = ["nice", "-n", "10"] if shutil.which("nice") else []
    return [*prefix, *argv]
