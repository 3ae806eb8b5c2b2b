"""What the service says of streams, for all readers of a task.

Each shard has a reader, and the service describes streams twenty times a second for a whole
account: a task with many shards asks once for all of them.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Final

from balanced_source_adapters.kinesis.client import Summary

LIFETIME: Final = 5.0
"""Seconds for which it is known that a stream was not deleted and created again, unless a request
fails."""


class Summaries:
    """See the module. Threads may share it.

    Args:
        clock: seconds of a monotonic clock.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._known: dict[str, tuple[Summary, float]] = {}
        self._asking: dict[str, Future[Summary]] = {}

    def of(self, stream: str, ask: Callable[[str], Summary]) -> Summary:
        """Return what is known of a stream, or ask; others get the same answer, or failure."""
        with self._lock:
            known, until = self._known.get(stream, (None, float("-inf")))
            if known is not None and until >= self._clock():
                return known
            pending = self._asking.get(stream)
            if pending is None:
                answer = self._asking[stream] = Future[Summary]()
        return self._ask(stream, ask, answer) if pending is None else pending.result()

    def doubt(self, stream: str) -> None:
        """Ask again the next time."""
        with self._lock:
            self._known.pop(stream, None)

    def _ask(
        self, stream: str, ask: Callable[[str], Summary], answer: "Future[Summary]"
    ) -> Summary:
        try:
            found = ask(stream)
        except BaseException as error:
            with self._lock:
                del self._asking[stream]
            answer.set_exception(error)
            raise
        with self._lock:
            del self._asking[stream]
            now = self._clock()
            self._known = {s: one for s, one in self._known.items() if one[1] >= now}
            self._known[stream] = found, now + LIFETIME
        answer.set_result(found)
        return found
