"""Ends a query that another program has started: when it says so, or when it is gone."""

import os
import signal
import threading
import time
from typing import Any, Final, Protocol

import structlog

BATCH_PATIENCE: Final = 40.0
"""Seconds that the running micro-batch may take to end after SIGTERM."""

ORPHAN_PATIENCE: Final = 10.0
"""Seconds that the query may take to end when its parent is gone."""

_POLL: Final = 0.1

log = structlog.get_logger(__name__)


class StoppableQuery(Protocol):
    """The part of Spark's StreamingQuery that is needed to end it."""

    @property
    def status(self) -> dict[str, Any]:
        """Whether a trigger is active."""

    @property
    def lastProgress(self) -> Any:
        """The newest micro-batch; None before the first."""

    def stop(self) -> None:
        """End the query; Spark cancels the micro-batch that runs."""


class Stopper:
    """Ends the program in order: at once before there is a query, then after its micro-batch."""

    def __init__(self) -> None:
        self._query: StoppableQuery | None = None
        self._is_starting = False
        self._is_asked = False
        self._is_orphan = False

    def on_sigterm(self) -> None:
        """Stop when SIGTERM arrives. To be called in the main thread."""
        signal.signal(signal.SIGTERM, lambda *_: self.stop())

    def on_end_of(self, descriptor: int) -> None:
        """Stop when the other end of a pipe is closed: the process that holds it is gone."""
        threading.Thread(target=self._await_end, args=(descriptor,), daemon=True).start()

    def query_starts(self) -> None:
        """Note that a query is about to exist: from here it may hold a claim."""
        self._is_starting = True

    def follow(self, query: StoppableQuery) -> None:
        """Stop this query from now on, also if the request came while it started."""
        self._query = query
        if self._is_asked:
            self.stop()

    def stop(self) -> None:
        """End the program."""
        log.info("told to stop")
        self._is_asked = True
        if self._query is not None:
            # In a thread: a signal handler that waits for the query would block the main thread.
            threading.Thread(target=self._end, args=(self._query,), daemon=True).start()
        elif not self._is_starting:
            # Spark's own process ends with the pipe to this one.
            os._exit(0)

    def _end(self, query: StoppableQuery) -> None:
        await_batch(query, ORPHAN_PATIENCE / 2 if self._is_orphan else BATCH_PATIENCE)
        query.stop()

    def _await_end(self, descriptor: int) -> None:
        # Not by sys.stdin: a thread that waits in it keeps the interpreter from ending.
        while os.read(descriptor, 1024):
            continue
        self._is_orphan = True
        deadline = threading.Timer(ORPHAN_PATIENCE, os._exit, [1])
        deadline.daemon = True
        deadline.start()
        self.stop()


def await_batch(query: StoppableQuery, seconds: float) -> None:
    """Wait until the micro-batch that runs has ended, at most this long.

    Spark would cancel it: its work would be lost, and the next run would replay it.
    """
    deadline = time.monotonic() + seconds
    before = _batch(query)
    while query.status["isTriggerActive"] and _batch(query) == before:
        if time.monotonic() >= deadline:
            log.warning("the micro-batch takes too long; it is cancelled", seconds=seconds)
            return
        time.sleep(_POLL)


def _batch(query: StoppableQuery) -> Any:
    progress = query.lastProgress
    return None if progress is None else progress["batchId"]
