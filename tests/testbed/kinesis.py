"""A real Kinesis server: kinesis-mock, in a process of its own.

It closes shards, and knows parents and children.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from testbed.cache import Cache
from testbed.node_packages import ensure_packages, node, served
from testbed.ports import PortPool
from testbed.progress import Progress

ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_DEFAULT_REGION": "us-east-1",
}
"""Of a client; the server takes any credentials."""

_TITLE = "the Kinesis server"
_SOON = "30ms"
"""How long streams are created, split and merged; half a second each without it."""


def ensure_kinesis(cache: Cache | None = None, progress: Progress | None = None) -> Path:
    """The folder of the server; see `ensure_packages`."""
    return ensure_packages("kinesis", _TITLE, cache, progress) / "kinesis-local"


@contextmanager
def kinesis_server() -> Iterator[str]:
    """A server without streams; yields its URL."""
    folder, ports = ensure_kinesis(), PortPool()
    plain, tls = ports.take(), ports.take()
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
    endpoint = f"http://127.0.0.1:{plain}"
    try:
        with served([node(), str(folder / "main.js")], endpoint, _TITLE, settings):
            yield endpoint
    finally:
        ports.close()
