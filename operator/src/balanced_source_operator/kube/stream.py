"""Lists and watches of a whole kind, beside the single objects of `kube.client`."""

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

import aiohttp
from kubernetes_asyncio.client import ApiClient

from balanced_source_operator.kube.client import api_exception, parsed, translated
from balanced_source_operator.kube.port import KubernetesError, Manifest
from balanced_source_operator.resources.kinds import ResourceKind

PAGE: Final = 100
"""Objects of one answer to a list."""

WATCH: Final = 300
"""Seconds after which the API server ends a watch."""

SILENCE: Final = 90.0
"""Seconds without a byte after which a watch is opened again, for its connection may be dead.

The API server sends a bookmark every minute, unless nothing of the kind has changed since it
started.
"""

GATHER: Final = 0.1
"""Seconds for which further changes may wait in the kernel once a watch has delivered something.

To wake the process, decrypt and resume for each of a hundred heartbeats a second costs several
times what is done about them. The first change after a pause is not held up.
"""

GATHER_BYTES: Final = 32 << 10
"""Bytes that do not wait any longer."""

_CONNECT: Final = 15.0
_GONE: Final = 410


class ExpiredError(KubernetesError):
    """The API server does not know what has changed since that revision: list again."""


class SilentWatchError(KubernetesError):
    """Nothing came for a while: the connection may be dead, or there is nothing to say.

    An API server sends no bookmark for a kind of which nothing has changed since it started.
    """


class ListPage(NamedTuple):
    """Some of the objects of a kind at one revision, the same for all pages of a list."""

    items: Sequence[Manifest]
    revision: str


class WatchEvent(NamedTuple):
    """What a watch delivers.

    ADDED, MODIFIED, DELETED, or BOOKMARK, whose object has only a revision.
    """

    event: str
    manifest: Manifest


class Stream(Protocol):
    """What an informer needs of an API server. Both methods raise `KubernetesError`."""

    def pages(
        self, kind: ResourceKind, namespace: str, *, selector: str
    ) -> AsyncGenerator[ListPage, None]:
        """Yield all objects with matching labels, of one namespace or, if it is empty, of all.

        In pages, one at least: thousands of objects at once would be a multiple of what is kept.

        Raises:
            UnknownKindError: there is no such kind.
            ExpiredError: the list took so long that the API server has forgotten its revision.
        """
        ...

    def watch(
        self, kind: ResourceKind, namespace: str, *, selector: str, revision: str
    ) -> AsyncGenerator[WatchEvent, None]:
        """Yield what changes after a revision, until the API server ends the watch.

        Raises:
            ExpiredError: the revision is too old.
            SilentWatchError: nothing came for a while.
        """
        ...


class KubernetesStream:
    """See `Stream`.

    Args:
        client: of its own: a watch holds its connection, and must not take one from the pool for
            requests.
    """

    def __init__(self, client: ApiClient) -> None:
        self._client = client

    async def pages(
        self, kind: ResourceKind, namespace: str, *, selector: str
    ) -> AsyncGenerator[ListPage, None]:
        query = {"labelSelector": selector, "limit": str(PAGE)}
        while True:
            found = parsed(await self._text(kind, namespace, query))
            items = [
                {"apiVersion": kind.api_version, "kind": kind.kind, **item}
                for item in found["items"]
            ]
            yield ListPage(items, str(found["metadata"]["resourceVersion"]))
            if not (token := found["metadata"].get("continue")):
                return
            query = {**query, "continue": token}

    async def watch(
        self, kind: ResourceKind, namespace: str, *, selector: str, revision: str
    ) -> AsyncGenerator[WatchEvent, None]:
        query = {
            "watch": "true",
            "labelSelector": selector,
            "resourceVersion": revision,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(WATCH),
        }
        try:
            # The API server ends a watch in time; a client that is quicker would take that for a
            # fault.
            async with await self._ask(kind, namespace, query, total=WATCH + _CONNECT) as response:
                if response.status != 200:  # noqa: PLR2004 - the only success of a watch
                    raise _refusal(kind, response.status, await response.text())
                try:
                    async for line in _lines(_gathered(response)):
                        yield _change(kind, line)
                # Not where the answer does not even begin: that is a fault.
                except aiohttp.SocketTimeoutError as error:
                    raise SilentWatchError(f"the watch of {kind.plural} is silent") from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise KubernetesError(f"the watch of {kind.plural} has broken: {error!r}") from error

    async def _text(self, kind: ResourceKind, namespace: str, query: Mapping[str, str]) -> str:
        try:
            async with await self._ask(kind, namespace, query, total=4 * _CONNECT) as response:
                text: str = await response.text()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise KubernetesError(f"the API server does not answer: {error!r}") from error
        if response.status != 200:  # noqa: PLR2004 - the only success of a list
            raise _refusal(kind, response.status, text)
        return text

    async def _ask(
        self, kind: ResourceKind, namespace: str, query: Mapping[str, str], *, total: float
    ) -> Any:
        return await self._client.call_api(
            kind.collection(namespace),
            "GET",
            query_params=list(query.items()),
            header_params={"Accept": "application/json"},
            auth_settings=["BearerToken"],
            _preload_content=False,
            _request_timeout=aiohttp.ClientTimeout(
                total=total, sock_connect=_CONNECT, sock_read=SILENCE
            ),
        )


async def _gathered(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """Yield what comes in chunks; after a small one, look again only when `GATHER` is over."""
    async for chunk in response.content.iter_any():
        yield chunk
        if len(chunk) < GATHER_BYTES and (raw := _socket_of(response)) is not None:
            with _not_woken(raw):
                await asyncio.sleep(GATHER)


def _socket_of(response: aiohttp.ClientResponse) -> socket.socket | None:
    connection = response.connection
    transport = connection.transport if connection is not None else None
    return transport.get_extra_info("socket") if transport is not None else None


@contextlib.contextmanager
def _not_woken(raw: socket.socket) -> Iterator[None]:
    """Let the kernel keep what comes until it is much, or the connection ends.

    Pausing a transport would not do: with TLS, asyncio reads from the socket all the same.
    """
    _low_water(raw, GATHER_BYTES)
    try:
        yield
    finally:
        _low_water(raw, 1)


def _low_water(raw: socket.socket, size: int) -> None:
    """Set how many bytes make a socket readable; see SO_RCVLOWAT in socket(7)."""
    with contextlib.suppress(OSError):  # closed meanwhile
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, size)


async def _lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield lines of any length; `readline` has a limit below that of an object."""
    rest: list[bytes] = []
    async for chunk in chunks:
        first, *others = chunk.split(b"\n")
        rest.append(first)
        for line in others:
            if whole := b"".join(rest).strip():
                yield whole
            rest = [line]


def _change(kind: ResourceKind, line: bytes) -> WatchEvent:
    try:
        found = json.loads(line)
        event, manifest = str(found["type"]), found["object"]
    except (ValueError, KeyError, TypeError) as error:
        raise KubernetesError(
            f"the watch of {kind.plural} delivers no JSON: {line[:200]!r}"
        ) from error
    # The HTTP status was sent long before: a fault in a running watch comes as an event.
    if event == "ERROR":
        raise _refusal(kind, int(manifest.get("code") or 0), json.dumps(manifest))
    return WatchEvent(event, manifest)


def _refusal(kind: ResourceKind, status: int, text: str) -> KubernetesError:
    if status == _GONE:
        return ExpiredError(f"{kind.plural}: the revision is too old")
    return translated(api_exception(status, text), kind)
