"""The page beside what it shows: in the operator's process, and in a thread of a local run."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Final

import structlog
from kubernetes_asyncio.client import ApiClient

from balanced_source.errors import BalancedSourceError
from balanced_source_operator.kube.reviews import Reviews
from balanced_source_operator.page.access import Access, ConfiguredToken, Everybody, ReviewedToken
from balanced_source_operator.page.board import StatusBoard
from balanced_source_operator.page.server import StatusPage, serving
from balanced_source_operator.resources.identity import Identity
from balanced_source_operator.resources.kinds import LEASE_NAME
from balanced_source_operator.runtime.audience import SourceMoment
from balanced_source_operator.settings import Settings

LOOPBACK: Final = "127.0.0.1"
_NAMES: Final = frozenset({"127.0.0.1", "localhost"})
"""Hosts by which a local page is opened.

A name of someone else that leads here (DNS rebinding) is not answered.
"""

_START: Final = 30.0

log = structlog.get_logger(__name__)

Publish = Callable[[SourceMoment], None]


def standby(namespace: str) -> str:
    """Return what a replica says that does not serve; `namespace` is that of the Lease."""
    return (
        "This replica stands by and knows nothing of the sources. Forward to the pod that holds the"
        f" Lease: kubectl get lease {LEASE_NAME} -n {namespace}"
        " -o jsonpath='{.spec.holderIdentity}'"
    )


@asynccontextmanager
async def answering_viewers(
    settings: Settings, board: StatusBoard, client: ApiClient, *, is_serving: Callable[[], bool]
) -> AsyncIterator[None]:
    """Serve the operator's page as long as this lasts; nothing unless it is switched on.

    Raises:
        BalancedSourceError: the port cannot be used.
    """
    if not settings.page_port:
        yield
        return
    page = StatusPage(
        board,
        _access(settings, client),
        absence=lambda: "" if is_serving() else standby(settings.lease_namespace),
    )
    async with _served(page, board, settings.page_host, settings.page_port):
        yield


def _access(settings: Settings, client: ApiClient) -> Access:
    file = settings.page_token_file
    return ConfiguredToken(Path(file)) if file else ReviewedToken(Reviews(client))


@asynccontextmanager
async def _served(page: StatusPage, board: StatusBoard, host: str, port: int) -> AsyncIterator[int]:
    async with serving(page, host, port) as chosen:
        sampling = asyncio.create_task(board.sample_for_ever(), name="status page")
        log.info("status page", address=f"http://{host}:{chosen}/")
        try:
            yield chosen
        finally:
            sampling.cancel()
            await asyncio.gather(sampling, return_exceptions=True)


@contextmanager
def page_in_thread(name: str, port: int) -> Iterator[Publish]:
    """Serve a page about one source on the loopback interface.

    Yield what it is told the source with.

    Args:
        name: of the source.
        port: to listen on.

    Raises:
        BalancedSourceError: the port cannot be used.
    """
    # A loop of its own: local mode has none, and its turns would block the page.
    thread = _PageThread(name, port)
    thread.start()
    try:
        yield thread.publish
    finally:
        thread.stop()


class _PageThread:
    def __init__(self, name: str, port: int) -> None:
        self._source = Identity(namespace="", name=name, uid="local")
        self._port = port
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._board = StatusBoard()
        self._is_up = threading.Event()
        self._failure: BalancedSourceError | None = None
        self._thread = threading.Thread(target=self._run, name="status page", daemon=True)

    def start(self) -> None:
        self._thread.start()
        if not self._is_up.wait(_START):
            raise BalancedSourceError("the status page does not start")
        if self._failure is not None:
            raise self._failure

    def publish(self, seen: SourceMoment) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: no one looks any more
            self._loop.call_soon_threadsafe(self._board.turned, self._source, lambda: seen)

    def stop(self) -> None:
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(_START)

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        except BalancedSourceError as error:
            self._failure = error
        finally:
            self._loop.close()
            self._is_up.set()

    async def _serve(self) -> None:
        # Everybody, but only by these names: a web site must not read the page through a user's
        # browser.
        page = StatusPage(self._board, Everybody(), hosts=_NAMES)
        async with _served(page, self._board, LOOPBACK, self._port):
            self._is_up.set()
            await self._stop.wait()
