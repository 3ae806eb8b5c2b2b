"""A real server with the interface of Google Cloud Storage: fake-gcs-server, in its own process.

It takes any credentials, lists all objects at once, and ignores the name to start after.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import quote

import httpx2

from testbed.builds import Builder
from testbed.node_packages import served
from testbed.ports import PortPool

BUCKET = "balanced"
PROGRAM = "fake-gcs-server"


@dataclass(frozen=True, slots=True)
class GcsBucket:
    """A bucket, as a client of its own sees it.

    Attributes:
        endpoint: URL of the server.
    """

    endpoint: str

    def create(self) -> None:
        """Create the bucket."""
        url = f"{self.endpoint}/storage/v1/b?project=test"
        httpx2.post(url, json={"name": BUCKET}, timeout=10).raise_for_status()

    def write(self, key: str, content: bytes) -> None:
        """Create or replace an object."""
        url = f"{self.endpoint}/upload/storage/v1/b/{BUCKET}/o"
        name = f"uploadType=media&name={quote(key, safe='')}"
        httpx2.post(f"{url}?{name}", content=content, timeout=10).raise_for_status()

    def delete(self, key: str) -> None:
        """Delete an object."""
        url = f"{self.endpoint}/storage/v1/b/{BUCKET}/o/{quote(key, safe='')}"
        httpx2.delete(url, timeout=10).raise_for_status()


@contextmanager
def gcs_server() -> Iterator[GcsBucket]:
    """A server with an empty bucket, in memory."""
    program, ports = Builder().ensure(PROGRAM)[PROGRAM], PortPool()
    port = ports.take()
    host = f"127.0.0.1:{port}"
    command = [str(program), "-scheme", "http", "-host", "127.0.0.1", "-port", str(port)]
    options = ["-backend", "memory", "-public-host", host]
    bucket = GcsBucket(f"http://{host}")
    try:
        with served([*command, *options], bucket.endpoint, "the server of Google Cloud Storage"):
            bucket.create()
            yield bucket
    finally:
        ports.close()
