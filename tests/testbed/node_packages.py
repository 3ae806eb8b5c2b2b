"""Servers from npm: fetched once, with every file pinned by its hash."""

import os
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx2

from testbed.cache import Cache, content_key
from testbed.commands import find_program, nice, run
from testbed.errors import BuildError, CommandError
from testbed.progress import Progress
from testbed.versions import TESTBED
from testbed.waiting import wait_until

_START_TIMEOUT = 180


def ensure_packages(
    name: str, title: str, cache: Cache | None = None, progress: Progress | None = None
) -> Path:
    """The folder `node_modules` of a server, fetched by npm if it is not in the cache.

    Args:
        name: of a folder under `npm/`, with a package.json and its lock file.
        title: of the server, for messages.
        cache: where it is kept.
        progress: is told of a fetch.

    Raises:
        BuildError: npm failed, or a package is not the pinned one.
        MissingPrerequisiteError: there is no npm.
    """
    source = TESTBED / "npm" / name
    pins = (source / "package.json", source / "package-lock.json")

    def fetch(target: Path) -> None:
        npm = find_program(
            "npm", "Install Node.js 20 or newer (Debian and Ubuntu: `apt-get install npm`)."
        )
        for pin in pins:
            (target / pin.name).write_bytes(pin.read_bytes())
        try:
            with (progress or Progress()).step(f"fetch {title}"):
                run(nice([npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"]), cwd=target)
        except CommandError as error:
            raise BuildError(f"npm could not fetch {title}: {error.stderr[-3000:]}") from error

    return (cache or Cache()).artefact(name, content_key(*pins), fetch) / "node_modules"


def node() -> str:
    """The program that runs a server."""
    return str(
        find_program(
            "node", "Install Node.js 20 or newer (Debian and Ubuntu: `apt-get install nodejs`)."
        )
    )


@contextmanager
def served(
    command: Sequence[str], endpoint: str, title: str, environment: Mapping[str, str] | None = None
) -> Iterator[None]:
    """A server, from the time that it answers. It keeps nothing, and is killed in the end."""
    process = subprocess.Popen(  # noqa: S603 - a pinned server
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **(environment or {})},
    )
    try:
        wait_until(_answers(process, endpoint, title), _START_TIMEOUT, title)
        yield
    finally:
        process.kill()
        process.wait(10)


def _answers(process: "subprocess.Popen[bytes]", endpoint: str, title: str) -> Callable[[], bool]:
    def answers() -> bool:
        if process.poll() is not None:
            raise RuntimeError(f"{title} ended with {process.returncode}")
        try:
            httpx2.get(endpoint, timeout=2)
        except httpx2.TransportError:
            return False
        return True

    return answers
