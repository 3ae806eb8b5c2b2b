"""A real Kinesis server: kinesis-mock, in a process of its own.

It closes shards, and knows parents and children.
"""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2

from testbed.cache import Cache, content_key
from testbed.commands import find_program, nice, run
from testbed.errors import BuildError, CommandError
from testbed.ports import PortPool
from testbed.progress import Progress
from testbed.versions import TESTBED
from testbed.waiting import wait_until

ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_DEFAULT_REGION": "us-east-1",
}
"""Of a client; the server takes any credentials."""

_SOURCE = TESTBED / "npm" / "kinesis"
_SOON = "30ms"
"""How long streams are created, split and merged; half a second each without it."""


def ensure_kinesis(cache: Cache | None = None, progress: Progress | None = None) -> Path:
    """The folder of the server, fetched by npm if it is not in the cache.

    Every file is pinned by its hash.

    Raises:
        BuildError: npm failed, or a package is not the pinned one.
        MissingPrerequisiteError: there is no npm.
    """
    pins = (_SOURCE / "package.json", _SOURCE / "package-lock.json")

    def fetch(target: Path) -> None:
        npm = find_program(
            "npm", "Install Node.js 20 or newer (Debian and Ubuntu: `apt-get install npm`)."
        )
        for pin in pins:
            (target / pin.name).write_bytes(pin.read_bytes())
        try:
            with (progress or Progress()).step("fetch the Kinesis server"):
                run(nice([npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"]), cwd=target)
        except CommandError as error:
            raise BuildError(
                f"npm could not fetch the Kinesis server: {error.stderr[-3000:]}"
            ) from error

    found = (cache or Cache()).artefact("kinesis", content_key(*pins), fetch)
    return found / "node_modules" / "kinesis-local"


@contextmanager
def kinesis_server() -> Iterator[str]:
    """A server without streams; yields its URL."""
    folder, ports = ensure_kinesis(), PortPool()
    plain, tls = ports.take(), ports.take()
    node = find_program(
        "node", "Install Node.js 20 or newer (Debian and Ubuntu: `apt-get install nodejs`)."
    )
    settings = {
        "KINESIS_MOCK_CERT_PATH": str(folder / "server.json"),
        "KINESIS_MOCK_PLAIN_PORT": str(plain),
        "KINESIS_MOCK_TLS_PORT": str(tls),
        "LOG_LEVEL": "ERROR",
        **dict.fromkeys(
            (
                "CREATE_STREAM_DURATION",
                "DELETE_STREAM_DURATION",
                "SPLIT_SHARD_DURATION",
                "MERGE_SHARDS_DURATION",
                "UPDATE_SHARD_COUNT_DURATION",
            ),
            _SOON,
        ),
    }
    process = subprocess.Popen(  # noqa: S603 - the pinned server
        [node, str(folder / "main.js")],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **settings},
    )
    endpoint = f"http://127.0.0.1:{plain}"
    try:
        wait_until(lambda: _answers(process, endpoint), 180, "the Kinesis server")
        yield endpoint
    finally:
        process.kill()  # it keeps nothing
        process.wait(10)
        ports.close()


def _answers(process: "subprocess.Popen[bytes]", endpoint: str) -> bool:
    if process.poll() is not None:
        raise RuntimeError(f"the Kinesis server ended with {process.returncode}")
    try:
        httpx2.get(endpoint, timeout=2)
    except httpx2.TransportError:
        return False
    return True
