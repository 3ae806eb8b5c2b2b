"""A real Azure Blob server: Azurite, in a process of its own.

It checks keys and signatures. It has no hierarchical namespace, and no identities of Entra.
"""

import base64
import hashlib
import hmac
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlencode

import httpx2

from testbed.cache import Cache
from testbed.node_packages import ensure_packages, node, served
from testbed.ports import PortPool
from testbed.progress import Progress

ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""The account that every Azurite has, and its key, which is public."""

CONTAINER = "balanced"

_TITLE = "the Azure Blob server"
_VERSION = "2021-06-08"


def ensure_azurite(cache: Cache | None = None, progress: Progress | None = None) -> Path:
    """The folder of the server; see `ensure_packages`."""
    return ensure_packages("azurite", _TITLE, cache, progress) / "azurite"


def sas_token(key: str = KEY, permissions: str = "rwdlac") -> str:
    """A shared access signature of the account."""
    begin, end = "2020-01-01T00:00:00Z", "2099-01-01T00:00:00Z"
    lines = [ACCOUNT, permissions, "b", "sco", begin, end, "", "", _VERSION, "", ""]
    digest = hmac.new(base64.b64decode(key), "\n".join(lines).encode(), hashlib.sha256).digest()
    return urlencode(
        {
            "sv": _VERSION,
            "ss": "b",
            "srt": "sco",
            "sp": permissions,
            "st": begin,
            "se": end,
            "sig": base64.b64encode(digest).decode(),
        }
    )


@dataclass(frozen=True, slots=True)
class AzureBlobs:
    """A container, as a client of its own sees it.

    Attributes:
        endpoint: URL of the server.
    """

    endpoint: str

    def create(self) -> None:
        """Create the container."""
        self._ask("PUT", "", {"restype": "container"})

    def write(self, key: str, content: bytes) -> None:
        """Create or replace an object."""
        self._ask("PUT", key, {}, content, {"x-ms-blob-type": "BlockBlob"})

    def delete(self, key: str) -> None:
        """Delete an object."""
        self._ask("DELETE", key, {})

    def _ask(
        self,
        method: str,
        key: str,
        query: dict[str, str],
        content: bytes = b"",
        headers: dict[str, str] | None = None,
    ) -> None:
        path = f"{ACCOUNT}/{CONTAINER}/{quote(key)}".rstrip("/")
        httpx2.request(
            method,
            f"{self.endpoint}/{path}?{urlencode(query)}&{sas_token()}",
            content=content,
            headers={"x-ms-version": _VERSION, **(headers or {})},
            timeout=10,
        ).raise_for_status()


@contextmanager
def azure_server() -> Iterator[AzureBlobs]:
    """A server with an empty container, in memory."""
    program, ports = ensure_azurite() / "dist" / "src" / "blob" / "main.js", PortPool()
    port = ports.take()
    options = ["--inMemoryPersistence", "--disableTelemetry", "--skipApiVersionCheck", "--silent"]
    blobs = AzureBlobs(f"http://127.0.0.1:{port}")
    try:
        with served(
            [node(), str(program), "--blobPort", str(port), *options], blobs.endpoint, _TITLE
        ):
            blobs.create()
            yield blobs
    finally:
        ports.close()
