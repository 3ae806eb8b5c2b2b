"""Makes the calls that the operator leaves to the driver.

Those that need the files or the role of the driver.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property
from typing import Any, Final

from balanced_source.api import (
    AsyncCall,
    CallCodec,
    Caller,
    CallExecutor,
    Connector,
    DriverOnly,
    Json,
    SecretReader,
)
from balanced_source.documents.calls import PAGE, CallAnswer, CallError, WantedCall, cut
from balanced_source.errors import (
    BalancedSourceError,
    DiscoveryError,
    RefusedDiscoveryError,
    in_short,
)
from balanced_source.reasons import Reason
from balanced_source_adapters.lazy_log import get_logger
from balanced_source_adapters.mistakes import call_error

THREADS: Final = 4
"""Calls that run at the same time."""

ROOM: Final = 2 * PAGE
"""Characters of answers in one report; a report must fit into one ConfigMap."""

MESSAGE_LIMIT: Final = 1000
"""Characters of an error's message."""

Pages = tuple[str, tuple[str, ...]]
"""Digest and pages of a result."""

log = get_logger(__name__)


class DriverCalls:
    """Calls of one driver. `want` and `answers` are called with the lock of the host runtime held.

    Args:
        connector: returns the connector of the source; asked when there is something to call.
        secrets: resolves the Secrets that are mounted.
        client_id: what servers see of the driver.
    """

    def __init__(
        self, connector: Callable[[], Connector], secrets: SecretReader, *, client_id: str
    ) -> None:
        self._make_connector = connector
        self._secrets = secrets
        self._client_id = client_id
        self._wanted: tuple[WantedCall, ...] = ()
        self._running: dict[str, Future[Pages | CallError]] = {}
        self._is_closed = False

    def want(self, wanted: Sequence[WantedCall], done: Callable[[], None]) -> None:
        """Start the calls that are new, and forget those that no one waits for.

        `done` is called at the end of each.
        """
        self._wanted = tuple(wanted)
        names = {call.id for call in wanted}
        # No one waits for the others: their results would fill every report.
        self._running = {name: future for name, future in self._running.items() if name in names}
        for call in wanted:
            if call.id not in self._running and not self._is_closed:
                future = self._running[call.id] = self._pool.submit(self._made, call.call)
                future.add_done_callback(lambda _: done())

    def answers(self) -> tuple[CallAnswer, ...]:
        """Return the pages that are asked for, as many as fit.

        The others come when these are taken.
        """
        found: list[CallAnswer] = []
        room = ROOM
        for call in self._wanted:
            future = self._running.get(call.id)
            if future is None or not future.done() or future.cancelled():
                continue
            answer = _answer(call, future.result())
            room -= len(answer.data)
            # A report that does not fit into its ConfigMap would not be written at all.
            if room < 0:
                break
            found.append(answer)
        return tuple(found)

    def close(self) -> None:
        """Start nothing any more. What has been answered stays answered."""
        self._is_closed = True
        if "_pool" in self.__dict__:
            self._pool.shutdown(wait=False, cancel_futures=True)

    @cached_property
    def _pool(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(THREADS, thread_name_prefix="bsrc-call")

    @cached_property
    def _connector(self) -> Connector:
        return self._make_connector()

    @cached_property
    def _execute(self) -> CallExecutor:
        return self._connector.executor(
            self._secrets, caller=Caller.OWNER, client_id=self._client_id
        )

    def _made(self, data: Json) -> Pages | CallError:
        call: Any = None
        try:
            codec = self._codec()
            call = codec.call_from_json(data)
            self._check(call)
            return cut(codec.result_to_json(call, self._execute(call)))
        except BaseException as error:  # noqa: BLE001 - whatever it was, people are told
            log.warning("a call for the operator failed", error=repr(error))
            return self._failed(call, error)

    def _failed(self, call: Any, error: BaseException) -> CallError:
        # A connector that cannot be made says so itself.
        if not isinstance(error, BalancedSourceError):
            error = call_error(self._connector.kind, call, error)
        return _error(error, scope=str(getattr(call, "scope", "")))

    def _codec(self) -> CallCodec:
        codec = self._connector.codec
        if codec is None:
            raise BalancedSourceError(f"connector {self._connector.kind!r} has no codec for calls")
        return codec

    def _check(self, call: AsyncCall) -> None:
        """The operator makes all other calls by itself."""
        if not isinstance(self._connector.identity_of(call), DriverOnly):
            raise BalancedSourceError(f"{type(call).__name__} is not for a driver to make")


def _answer(call: WantedCall, result: Pages | CallError) -> CallAnswer:
    if isinstance(result, CallError):
        return CallAnswer(id=call.id, error=result)
    digest, pages = result
    # A page that another driver's result had, and this one does not: begin again.
    page = call.page if call.page < len(pages) else 0
    return CallAnswer(id=call.id, digest=digest, page=page, pages=len(pages), data=pages[page])


def _error(error: BaseException, *, scope: str) -> CallError:
    is_known = isinstance(error, DiscoveryError)
    message = str(error) if is_known else in_short(error)
    return CallError(
        message=message[:MESSAGE_LIMIT],
        reason=error.reason if isinstance(error, DiscoveryError) else Reason.DISCOVERY_FAILED,
        scope=error.scope or scope if isinstance(error, DiscoveryError) else scope,
        is_refused=isinstance(error, RefusedDiscoveryError),
    )
