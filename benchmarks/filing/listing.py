"""What a whole listing of a large bucket costs the driver.

A server of our own answers ListObjectsV2 with pages of 1,000 keys: real ones of a million objects
take longer than what is measured. CPU and memory are those of the process that lists.
"""

import re
import resource
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from balanced_source.connectors.files import FilesSource, Format, Store
from balanced_source_adapters.files.connector import Lister

BUCKET: Final = "bench"
PAGE: Final = 1000
_HEAD: Final = (
    '<?xml version="1.0"?><ListBucketResult><Name>bench</Name><IsTruncated>{}</IsTruncated>'
)
_ENTRY: Final = (
    "<Contents><Key>logs/{:09}.json</Key><LastModified>2026-01-01T{:02}:{:02}:{:02}.000Z"
    '</LastModified><ETag>"0123456789abcdef0123456789abcdef"</ETag><Size>10240</Size>'
    "<StorageClass>STANDARD</StorageClass></Contents>"
)


class Secret:
    """Credentials that the server does not check."""

    def read(self, name: str) -> dict[str, str]:
        """Return both halves."""
        return {"accessKeyId": name, "secretAccessKey": name}


def measure_listing(objects: int) -> dict[str, float]:
    """List a bucket twice, and return CPU seconds and MB that listing added.

    The first listing finds all objects new; the second one is what each further look costs.
    """
    command = [sys.executable, "-m", "benchmarks.filing.listing", str(objects)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603 - this file
    try:
        port = int(server.stdout.readline()) if server.stdout else 0
        return _listed_twice(port, objects)
    finally:
        server.kill()
        server.wait()


def _listed_twice(port: int, objects: int) -> dict[str, float]:
    store = Store(endpoint=f"http://127.0.0.1:{port}", region="us-east-1", secret="any")  # noqa: S106
    source = FilesSource(
        paths=(f"s3://{BUCKET}/logs/*.json",),
        kind_of_file=Format.JSON,
        store=store,
        discovery_interval=1.0,
    )
    found: dict[str, float] = {"objects": objects}
    lister, cursor, before = Lister(Secret()), None, _megabytes()
    for name in ("first", "next"):
        began, cpu = time.monotonic(), time.process_time()
        page = lister(source.list_page(1, cursor))
        if page.refusal:
            raise RuntimeError(page.refusal)
        # Not the rest of the pages: a driver that has restarted lists again.
        lister, cursor = Lister(Secret()), page.cursor
        found |= {
            f"{name}_cpu_s": round(time.process_time() - cpu, 2),
            f"{name}_s": round(time.monotonic() - began, 2),
            f"{name}_mb": round(_megabytes() - before, 1),
        }
    return found


def _megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


class Handler(BaseHTTPRequestHandler):
    """Answers listings."""

    protocol_version = "HTTP/1.1"
    objects = 0

    def do_HEAD(self) -> None:
        """The bucket is there, and no object has the name of the folder."""
        self.send_response(200 if self.path.strip("/") == BUCKET else 404)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        """Return a page of the listing."""
        query = parse_qs(urlsplit(self.path).query)
        after = (query.get("continuation-token") or query.get("start-after") or [""])[0]
        digits = re.search(r"\d{9}", after)
        begin = int(digits.group()) + 1 if digits else 0
        limit = min(PAGE, int(query.get("max-keys", [str(PAGE)])[0]))
        body = _page(begin, min(begin + limit, self.objects), self.objects).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def _page(begin: int, end: int, objects: int) -> str:
    entries = [_ENTRY.format(n, n // 3600 % 24, n // 60 % 60, n % 60) for n in range(begin, end)]
    token = f"<NextContinuationToken>{end - 1:09}</NextContinuationToken>" if end < objects else ""
    count = f"<KeyCount>{len(entries)}</KeyCount><MaxKeys>{PAGE}</MaxKeys>"
    more = _HEAD.format(str(end < objects).lower())
    return f"{more}{count}{token}{''.join(entries)}</ListBucketResult>"


if __name__ == "__main__":
    Handler.objects = int(sys.argv[1])
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as serving:
        print(serving.server_port, flush=True)
        serving.serve_forever()
