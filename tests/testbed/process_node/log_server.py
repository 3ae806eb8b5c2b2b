"""The kubelet's port, as far as `kubectl logs` needs it."""

import asyncio
import ssl
from pathlib import Path

from aiohttp import web

from testbed.ports import LOOPBACK
from testbed.process_node.config import NodeConfig
from testbed.process_node.node import Node
from testbed.process_node.pods import Pod

_CHUNK = 65536
_POLL_SECONDS = 0.2


async def serve_logs(node: Node, config: NodeConfig) -> web.AppRunner:
    """Serve `/containerLogs/NAMESPACE/POD/CONTAINER` over HTTPS.

    The caller cleans the runner up.
    """

    async def handle(request: web.Request) -> web.StreamResponse:
        return await _logs(node, request)

    application = web.Application()
    application.router.add_get("/containerLogs/{namespace}/{pod}/{container}", handle)
    runner = web.AppRunner(application)
    await runner.setup()
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(config.certificate, config.key)
    await web.TCPSite(runner, LOOPBACK, config.port, ssl_context=tls).start()
    return runner


async def _logs(node: Node, request: web.Request) -> web.StreamResponse:
    names, query = request.match_info, request.query
    pod = node.find(names["namespace"], names["pod"])
    file = pod and pod.log_file(names["container"], previous=query.get("previous") == "true")
    if not pod or not file:
        return web.Response(status=404, text=f"no log of container {names['container']}")
    response = web.StreamResponse()
    await response.prepare(request)
    position = 0
    if "tailLines" in query:
        text, position = _tail(file, int(query["tailLines"]))
        await response.write(text)
    follow = query.get("follow") == "true"
    await _copy(file, position, response, pod if follow else None, names["container"])
    return response


def _tail(file: Path, lines: int) -> tuple[bytes, int]:
    """The last lines of a file, and where it ended."""
    content = file.read_bytes()
    last = content.splitlines(keepends=True)[-lines:] if lines else []
    return b"".join(last), len(content)


async def _copy(
    file: Path, position: int, response: web.StreamResponse, pod: Pod | None, container: str
) -> None:
    """Copy from a position to the end; with a pod, continue until its container has ended."""
    with file.open("rb") as handle:
        handle.seek(position)
        while True:
            ended = pod is None or not pod.runs(container)
            while chunk := handle.read(_CHUNK):
                await response.write(chunk)
            if ended:
                return
            await asyncio.sleep(_POLL_SECONDS)
