"""A thin client of the Kubernetes API: JSON in, JSON out, and watches that never end."""

import asyncio
import json
import logging
import ssl
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

import aiohttp

Json = dict[str, Any]
MERGE_PATCH = "application/merge-patch+json"
_TIMEOUT = aiohttp.ClientTimeout(total=20, sock_connect=5)
_NOT_FOUND = 404
_log = logging.getLogger(__name__)


class ApiError(Exception):
    """The API server refused a request.

    Attributes:
        status: the HTTP status.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status


UNAVAILABLE = (aiohttp.ClientError, TimeoutError, OSError)
"""What a request raises while the API server is down."""


class Api:
    """A connection to the API server as one user; an asynchronous context manager."""

    def __init__(self, server: str, token: str, ca_file: Path) -> None:
        self._server = server
        self._headers = {"Authorization": f"Bearer {token}"}
        self._tls = ssl.create_default_context(cafile=str(ca_file))

    async def __aenter__(self) -> Self:
        connector = aiohttp.TCPConnector(ssl=self._tls, limit=0)
        self._session = aiohttp.ClientSession(
            headers=self._headers, connector=connector, timeout=_TIMEOUT
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
        self,
        method: str,
        path: str,
        body: Json | None = None,
        content_type: str = "application/json",
    ) -> Json:
        """Send one request.

        Raises:
            ApiError: the server refused it.
            aiohttp.ClientError, TimeoutError: the server is not there.
        """
        data = None if body is None else json.dumps(body)
        headers = {"Content-Type": content_type}
        async with self._session.request(
            method, self._server + path, data=data, headers=headers
        ) as reply:
            await _check(reply)
            return cast("Json", await reply.json())

    async def find(self, path: str) -> Json | None:
        """One object, or None if there is none."""
        try:
            return await self.request("GET", path)
        except ApiError as error:
            if error.status == _NOT_FOUND:
                return None
            raise

    async def patch(self, path: str, body: Json) -> Json:
        """Change an object by a merge patch."""
        return await self.request("PATCH", path, body, MERGE_PATCH)

    async def watch(self, path: str, version: str) -> AsyncIterator[Json]:
        """The events of a collection after a version, until the server ends the watch."""
        query = f"watch=1&allowWatchBookmarks=true&timeoutSeconds=300&resourceVersion={version}"
        url = f"{self._server}{path}?{query}"
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=5)
        async with self._session.get(url, timeout=timeout) as reply:
            await _check(reply)
            rest = b""
            # not by readline: a ConfigMap may be larger than any line limit
            async for chunk in reply.content.iter_any():
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    yield json.loads(line)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reflector:
    """Follows a collection forever, through lost watches and outages.

    Attributes:
        api: the connection.
        path: of the collection.
        on_list: called with all objects at the start and after every gap.
        on_event: called with type and object of each change in between.
    """

    api: Api
    path: str
    on_list: Callable[[list[Json]], None]
    on_event: Callable[[str, Json], None]

    async def run(self) -> None:
        """Follow until cancelled."""
        while True:
            try:
                listed = await self.api.request("GET", self.path)
                self.on_list(listed["items"])
                await self._follow(listed["metadata"]["resourceVersion"])
            except (*UNAVAILABLE, ApiError) as error:
                _log.info("watch of %s broke: %r", self.path, error)
                await asyncio.sleep(0.3)

    async def _follow(self, version: str) -> None:
        """Follow until the version is too old for the server or the connection breaks."""
        while True:
            async for event in self.api.watch(self.path, version):
                if event["type"] == "ERROR":
                    return
                version = event["object"]["metadata"]["resourceVersion"]
                if event["type"] != "BOOKMARK":
                    self.on_event(event["type"], event["object"])


async def _check(reply: aiohttp.ClientResponse) -> None:
    if not reply.ok:
        raise ApiError(reply.status, (await reply.text())[:500])
