"""Serves the page: three files, a plan, and a stream of server-sent events.

Everything else is the page's own work.

The files say nothing about any source, so that they need no token. Everything under ``/api`` does.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib import resources
from typing import Final

from aiohttp import web

from balanced_source.errors import BalancedSourceError, StateError
from balanced_source_operator.dry_run import rescaled
from balanced_source_operator.page.access import Access, AccessError, Guest
from balanced_source_operator.page.board import Key, Shown, StatusBoard
from balanced_source_operator.page.exhibit import plan_body
from balanced_source_operator.page.stream import Feed

ASSETS: Final = {
    "/": ("index.html", "text/html"),
    "/page.js": ("page.js", "text/javascript"),
    "/page.css": ("page.css", "text/css"),
    "/favicon.ico": ("icon.svg", "image/svg+xml"),
}
"""Path → file and type."""

HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src"
        " 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none';"
        " require-trusted-types-for 'script'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Of every answer."""

MAX_VIEWERS: Final = 50
"""Open streams at the same time."""

MAX_READERS: Final = 1_000
"""Readers that a plan may be asked for: what `spec.parallelism` allows."""

_HEARTBEAT: Final = 15.0
"""Seconds without a change after which a stream says that it lives."""

_PACE: Final = 1.0
"""Seconds between two parts of a stream, at least."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_GUEST: Final = "guest"


class StatusPage:
    """What the handlers share.

    Args:
        board: the sources.
        access: who may look.
        absence: returns why there is nothing to show; empty if this process serves.
        hosts: values of the header Host that are answered; empty answers all.
    """

    def __init__(
        self,
        board: StatusBoard,
        access: Access,
        *,
        absence: Callable[[], str] = lambda: "",
        hosts: frozenset[str] = frozenset(),
    ) -> None:
        self._board = board
        self._access = access
        self._absence = absence
        self._hosts = hosts
        self._viewers = 0
        self._is_closing = False
        self._planning = asyncio.Semaphore(1)

    def application(self) -> web.Application:
        """Return the application for aiohttp."""
        application = web.Application(middlewares=[self._answer], client_max_size=1024)
        for path, (file, kind) in ASSETS.items():
            application.router.add_get(path, _asset(file, kind))
        application.router.add_get("/api/events", self._events)
        application.router.add_get("/api/plan", self._plan)
        application.on_response_prepare.append(_add_headers)
        application.on_shutdown.append(self._end_streams)
        return application

    async def _end_streams(self, _: web.Application) -> None:
        """End all streams at once, so that they do not hold up the end of the process."""
        self._is_closing = True
        # Streams sleep until something changes, and would not see that they should end.
        self._board.wake()

    @web.middleware
    async def _answer(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Admit guests, and turn every refusal into a sentence."""
        try:
            await self._admit(request)
            return await handler(request)
        except AccessError as error:
            return _refusal(error.status, str(error))
        except web.HTTPException as error:
            return _refusal(error.status, f"{request.method} {request.path}: {error.reason}.")

    async def _admit(self, request: web.Request) -> None:
        if self._hosts and _host_of(request) not in self._hosts:
            raise AccessError(
                421, "Open this page as http://localhost or http://127.0.0.1, with its port."
            )
        if request.path.startswith("/api/"):
            request[_GUEST] = await self._access.admit(_token(request))
            if absence := self._absence():
                raise AccessError(503, absence)

    async def _plan(self, request: web.Request) -> web.Response:
        """What another number of readers would move.

        Computed beside the event loop, one plan at a time.
        """
        if (key := _key(request)) is None:
            raise AccessError(400, "Name a source: ?namespace=NAMESPACE&name=NAME")
        shown = await self._admitted(request[_GUEST], key)
        if shown is None:
            where = f" in namespace {key[0]}" if key[0] else ""
            raise AccessError(
                404,
                f"There is no BalancedSource {key[1]}{where}, or this operator does not serve it.",
            )
        readers, seen = _number_of_readers(request), shown.look()
        if seen.source is None or seen.checkpoint is None:
            raise AccessError(
                409,
                "There is no plan yet: the source has no state. Wait until its first discovery"
                " ends.",
            )
        # A plan of many splits takes a core: two at a time would starve the event loop that
        # decides.
        async with self._planning:
            try:
                hosts = seen.hosts_for(readers) if seen.hosts_for is not None else ()
                found = await asyncio.to_thread(
                    rescaled, seen.source, seen.checkpoint(), readers, hosts=hosts
                )
            except StateError as error:
                raise AccessError(409, f"There is no plan: {error}.") from error
        return web.json_response(plan_body(found))

    async def _admitted(self, guest: Guest, key: Key) -> Shown | None:
        """Return what is shown of a source; None if there is none.

        A guest without the right does not learn that.
        """
        if not await guest.may_see(key[0]):
            raise AccessError(403, guest.refusal(key[0]))
        return self._board.get(key)

    async def _events(self, request: web.Request) -> web.StreamResponse:
        """Follow the list of sources and, if one is named, that source with its splits.

        Also one that comes later.
        """
        key, guest = _key(request), request[_GUEST]
        if key is not None:
            await self._admitted(guest, key)
        if self._viewers >= MAX_VIEWERS:
            raise AccessError(
                503,
                f"{MAX_VIEWERS} people look at this page already: close a tab, or try again later.",
            )
        self._viewers += 1
        try:
            return await self._stream(request, key)
        finally:
            self._viewers -= 1

    async def _stream(self, request: web.Request, key: Key | None) -> web.StreamResponse:
        response = web.StreamResponse(
            headers={"Content-Type": "text/event-stream", "X-Accel-Buffering": "no"}
        )
        await response.prepare(request)
        feed = Feed(self._board, key)
        with (
            self._board.watching(key) as changed,
            contextlib.suppress(ConnectionError, AccessError),
        ):
            while not self._is_closing:
                changed.clear()
                # a token may expire while its bearer looks
                guest = await self._access.admit(_token(request))
                if self._absence():
                    break
                for part in await feed.news(guest):
                    await response.write(part)
                # A source in turmoil changes many times a second, which no one can read.
                await asyncio.sleep(_PACE)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_HEARTBEAT):
                        await changed.wait()
                if not changed.is_set():
                    await response.write(b": still here\n\n")
        return response


def _asset(file: str, kind: str) -> Handler:
    content = resources.files(__package__).joinpath("assets", file).read_bytes()

    async def answer(_: web.Request) -> web.Response:
        return web.Response(body=content, content_type=kind, charset="utf-8")

    return answer


async def _add_headers(_: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(HEADERS)
    response.headers.pop("Server", None)


def _refusal(status: int, sentence: str) -> web.Response:
    headers = {"WWW-Authenticate": "Bearer"} if status == web.HTTPUnauthorized.status_code else {}
    return web.json_response({"error": sentence}, status=status, headers=headers)


def _token(request: web.Request) -> str:
    kind, _, token = request.headers.get("Authorization", "").partition(" ")
    return token.strip() if kind.lower() == "bearer" else ""


def _host_of(request: web.Request) -> str:
    return (
        request.host.rpartition(":")[0] if ":" in request.host.rpartition("]")[2] else request.host
    )


def _key(request: web.Request) -> Key | None:
    name = request.query.get("name", "")
    return (request.query.get("namespace", ""), name) if name else None


def _number_of_readers(request: web.Request) -> int:
    text = request.query.get("readers", "")
    if not (
        text.isascii()
        and text.isdigit()
        and len(text) <= len(str(MAX_READERS))
        and 1 <= int(text) <= MAX_READERS
    ):
        raise AccessError(
            400, f"The number of readers must be a whole number from 1 to {MAX_READERS}."
        )
    return int(text)


@asynccontextmanager
async def serving(page: StatusPage, host: str, port: int) -> AsyncIterator[int]:
    """Serve a page as long as this lasts; yield the port, which is chosen if 0 is given.

    Raises:
        BalancedSourceError: the port cannot be used.
    """
    runner = web.AppRunner(page.application(), access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, port)
        try:
            await site.start()
        except OSError as error:
            message = (
                f"the status page cannot listen on {host}:{port}: {error.strerror}. Choose another"
                " port"
            )
            raise BalancedSourceError(message) from error
        yield int(runner.addresses[0][1])
    finally:
        await runner.cleanup()
