"""A real S3 server: moto, in a process of its own.

Its conditional PUT and its listing are right; it is slow.
"""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import httpx2

from testbed.waiting import wait_until

BUCKET = "balanced"


@contextmanager
def s3_server() -> Iterator[dict[str, str]]:
    """A server with an empty bucket; yields the environment of a client."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    endpoint = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    process = subprocess.Popen(  # noqa: S603
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=os.environ
    )
    try:
        wait_until(lambda: _answers(process, endpoint), 60, "the S3 server")
        # moto takes requests without a signature
        httpx2.put(f"{endpoint}/{BUCKET}", timeout=10).raise_for_status()
        yield {
            "AWS_ENDPOINT_URL": endpoint,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_REGION": "us-east-1",
            "AWS_ALLOW_HTTP": "true",
        }
    finally:
        process.terminate()
        process.wait(10)


def _answers(process: "subprocess.Popen[bytes]", endpoint: str) -> bool:
    if process.poll() is not None:
        raise RuntimeError(f"the S3 server ended with {process.returncode}")
    try:
        httpx2.get(endpoint, timeout=2)
    except httpx2.TransportError:
        return False
    return True
