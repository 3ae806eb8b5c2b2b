"""What a watch delivers, line by line, from a server that plays the API server."""

import asyncio
import select
import socket
from collections.abc import AsyncIterator, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import web
from kubernetes_asyncio.client import ApiClient, Configuration

from balanced_source_operator.kube import stream as stream_module
from balanced_source_operator.kube.port import KubernetesError, RefusedError
from balanced_source_operator.kube.stream import (
    GATHER_BYTES,
    ExpiredError,
    KubernetesStream,
    SilentWatchError,
    WatchEvent,
)
from balanced_source_operator.resources.kinds import CONFIG_MAP

pytestmark = pytest.mark.asyncio

ADDED = b'{"type": "ADDED", "object": {"metadata": {"name": "a", "resourceVersion": "7"}}}'
GONE = (
    b'{"type": "ERROR", "object": '
    b'{"kind": "Status", "code": 410, "message": "too old resource version"}}'
)
BROKEN = b'{"type": "ERROR", "object": {"kind": "Status", "code": 500, "message": "etcd is gone"}}'


class Server:
    """Answers a watch with chunks, or with a status."""

    def __init__(self) -> None:
        self.chunks: list[bytes] = []
        self.status = 200
        self.begins, self.ends = asyncio.Event(), asyncio.Event()
        self.begins.set()
        self.ends.set()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(status=self.status)
        await self.begins.wait()
        await response.prepare(request)
        for chunk in self.chunks:
            await response.write(chunk)
        await self.ends.wait()
        return response


@pytest.fixture
async def scene() -> AsyncIterator[tuple[Server, KubernetesStream]]:
    server, application = Server(), web.Application()
    application.router.add_get("/{path:.*}", server.answer)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    configuration = Configuration()
    configuration.host = f"http://127.0.0.1:{runner.addresses[0][1]}"
    async with ApiClient(configuration) as client:
        yield server, KubernetesStream(client)
        server.begins.set()
        server.ends.set()
    await runner.cleanup()


async def watched(stream: KubernetesStream) -> list[WatchEvent]:
    return [change async for change in stream.watch(CONFIG_MAP, "", selector="", revision="1")]


async def test_lines_may_be_cut_anywhere(scene: tuple[Server, KubernetesStream]) -> None:
    server, stream = scene
    server.chunks = [ADDED[:10], ADDED[10:] + b"\n" + ADDED[:5], ADDED[5:] + b"\n\n"]
    found = await watched(stream)
    assert [(change.event, change.manifest["metadata"]["name"]) for change in found] == [
        ("ADDED", "a")
    ] * 2


@pytest.mark.parametrize(
    ("status", "line", "error"),
    [
        (200, GONE, ExpiredError),
        (410, GONE, ExpiredError),
        (200, BROKEN, RefusedError),
        (403, b'{"message": "not allowed"}', RefusedError),
        (200, b"<html>a proxy</html>", KubernetesError),
    ],
)
async def test_a_watch_that_ends_badly_says_why(
    scene: tuple[Server, KubernetesStream], status: int, line: bytes, error: type[Exception]
) -> None:
    server, stream = scene
    server.status, server.chunks = status, [line + b"\n"]
    with pytest.raises(error):
        await watched(stream)


@pytest.mark.parametrize(("begins", "is_silent"), [(True, True), (False, False)])
async def test_silence_is_told_from_an_api_server_that_does_not_answer(
    scene: tuple[Server, KubernetesStream],
    monkeypatch: pytest.MonkeyPatch,
    begins: bool,
    is_silent: bool,
) -> None:
    monkeypatch.setattr("balanced_source_operator.kube.stream.SILENCE", 0.05)
    server, stream = scene
    (server.ends if begins else server.begins).clear()

    with pytest.raises(KubernetesError) as found:
        await watched(stream)

    assert isinstance(found.value, SilentWatchError) is is_silent


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """A TCP connection: who writes, and who reads."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        writer = socket.create_connection(server.getsockname())
        reader, _ = server.accept()
    with writer, reader:
        yield writer, reader


def is_readable(reader: socket.socket, count: int) -> bool:
    """Whether `select` calls a socket readable once so many bytes have come."""
    while len(reader.recv(count, socket.MSG_PEEK | socket.MSG_WAITALL)) < count:
        pass
    return bool(select.select([reader], [], [], 0)[0])


def response_of(chunks: list[bytes], raw: socket.socket | None) -> Any:
    """What `_gathered` needs of an answer."""

    async def iter_any() -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield chunk

    transport = SimpleNamespace(get_extra_info={"socket": raw}.get)
    connection = SimpleNamespace(transport=transport if raw is not None else None)
    return SimpleNamespace(content=SimpleNamespace(iter_any=iter_any), connection=connection)


async def test_after_a_small_chunk_the_process_is_not_woken_for_each_change(
    pair: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, reader = pair
    woken: list[bool] = []

    async def pause(_seconds: float) -> None:
        writer.sendall(b"change")
        woken.append(is_readable(reader, 6))
        writer.sendall(b"x" * GATHER_BYTES)
        woken.append(is_readable(reader, GATHER_BYTES))
        reader.recv(2 * GATHER_BYTES, socket.MSG_WAITALL | socket.MSG_DONTWAIT)

    monkeypatch.setattr(stream_module.asyncio, "sleep", pause)
    chunks = [b"small", b"x" * GATHER_BYTES, b"small"]
    assert [c async for c in stream_module._gathered(response_of(chunks, reader))] == chunks
    assert woken == [False, True] * 2, "held back when little has come; no pause after much"
    writer.sendall(b"change")
    assert is_readable(reader, 6), "as before, after the pause"


async def test_a_watch_that_ends_while_changes_are_gathered_leaves_the_socket_as_it_was(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    _writer, reader = pair
    chunks = stream_module._gathered(response_of([b"small"], reader))
    await anext(chunks)
    pausing = asyncio.ensure_future(anext(chunks))
    await asyncio.sleep(0)
    assert reader.getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT) == GATHER_BYTES
    pausing.cancel()
    await asyncio.wait([pausing])
    assert reader.getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT) == 1


@pytest.mark.parametrize("is_closed", [True, False])
async def test_what_came_last_is_delivered_without_a_connection(*, is_closed: bool) -> None:
    raw = socket.socket() if is_closed else None
    if raw is not None:
        raw.close()
    found = [chunk async for chunk in stream_module._gathered(response_of([b"last"], raw))]
    assert found == [b"last"]
