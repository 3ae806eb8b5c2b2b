"""A small client of the API server for objects by the thousand: no models, one connection pool."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Iterable, Mapping
from types import TracebackType
from typing import Any, Final, Self

import aiohttp

from balanced_source_operator.resources.kinds import ResourceKind

MERGE: Final = "application/merge-patch+json"

AT_ONCE: Final = 20
"""Requests that run at the same time when thousands are made."""


class Api:
    """An async context manager.

    Args:
        server: URL of the API server.
        ca_file: certificate of its authority.
        token: of a user with all rights.
    """

    def __init__(self, server: str, *, ca_file: str, token: str) -> None:
        self._server = server
        self._tls = ssl.create_default_context(cafile=ca_file)
        self._headers = {"Authorization": f"Bearer {token}"}

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            headers=self._headers, connector=aiohttp.TCPConnector(ssl=self._tls, limit=100)
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._session.close()

    async def request(
        self, method: str, path: str, body: Any = None, *, kind: str = "application/json"
    ) -> Any:
        """Send a request and return what the API server answers.

        Raises:
            RuntimeError: it refused.
        """
        data = None if body is None else json.dumps(body)
        headers = {"Content-Type": kind}
        async with self._session.request(
            method, self._server + path, data=data, headers=headers
        ) as response:
            text = await response.text()
            if response.status >= 300:
                raise RuntimeError(f"{method} {path}: {response.status} {text[:300]}")
            return json.loads(text)

    async def many(self, requests: Iterable[tuple[str, str, Any, str]]) -> None:
        """Send requests (method, path, body, content type), several at a time."""
        places = asyncio.Semaphore(AT_ONCE)

        async def one(method: str, path: str, body: Any, kind: str) -> None:
            async with places:
                await self.request(method, path, body, kind=kind)

        await asyncio.gather(*(one(*request) for request in requests))

    async def items(self, kind: ResourceKind, namespace: str) -> list[Mapping[str, Any]]:
        """Return all objects of a kind."""
        answer: Mapping[str, Any] = await self.request("GET", kind.path(namespace))
        return list(answer["items"])

    async def watch(
        self, kind: ResourceKind, namespace: str, *, only: bytes
    ) -> AsyncIterator[Mapping[str, Any]]:
        """Yield all objects of a kind, then those that change, if their line contains `only`."""
        listed = await self.request("GET", kind.path(namespace))
        for item in listed["items"]:
            if only.decode() in json.dumps(item["metadata"]["name"]):
                yield item
        revision = listed["metadata"]["resourceVersion"]
        path = f"{kind.path(namespace)}?watch=1&timeoutSeconds=86400&resourceVersion={revision}"
        timeout = aiohttp.ClientTimeout(total=None)
        async with self._session.get(self._server + path, timeout=timeout) as response:
            rest = b""
            async for chunk in response.content.iter_any():
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    if only in line:
                        yield json.loads(line)["object"]
