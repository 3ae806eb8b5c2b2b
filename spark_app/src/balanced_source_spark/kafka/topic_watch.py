"""Ends reads of topics that are deleted meanwhile.

librdkafka waits for a partition that does not exist any more, in the hope of its return: the read
would only end when it counts as stalled, two minutes later. So a thread looks at the topics of
reads to which nothing comes.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from balanced_source.errors import BalancedSourceError

LOOK_AFTER: Final = 5.0
"""Seconds without a record batch after which the topics of a read are checked."""

LOOK_EVERY: Final = 1.0
"""Seconds between two looks."""


class Interrupt:
    """Ends a read from another thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stop: Callable[[], Any] | None = None
        self._is_set = False

    @property
    def is_set(self) -> bool:
        """Whether the read has to end."""
        return self._is_set

    @contextmanager
    def calls(self, stop: Callable[[], Any]) -> Iterator[None]:
        """Have `stop` called if the read has to end while this context is open."""
        with self._lock:
            self._stop = stop
            # It may have been set between the start of the watch and this read.
            if self._is_set:
                stop()
        try:
            yield
        finally:
            with self._lock:
                self._stop = None

    def set(self) -> None:
        """End the read."""
        with self._lock:
            self._is_set = True
            if self._stop is not None:
                self._stop()


@dataclass(slots=True, eq=False)
class WatchedRead:
    """One read that is watched."""

    is_gone: Callable[[], bool]
    interrupt: Interrupt
    moved_at: float = field(default_factory=time.monotonic)

    def moved(self) -> None:
        """Note that a record batch has come."""
        self.moved_at = time.monotonic()


class TopicWatch:
    """Looks at the reads of one process.

    Args:
        look_after: see `LOOK_AFTER`.
        look_every: see `LOOK_EVERY`.
    """

    def __init__(self, *, look_after: float = LOOK_AFTER, look_every: float = LOOK_EVERY) -> None:
        self._look_after = look_after
        self._look_every = look_every
        self._changed = threading.Condition()
        self._reads: set[WatchedRead] = set()
        self._process: int | None = None

    @contextmanager
    def watching(self, is_gone: Callable[[], bool], interrupt: Interrupt) -> Iterator[WatchedRead]:
        """Watch a read while this context is open.

        Args:
            is_gone: whether what is read does not exist any more. Called by another thread; may
                raise BalancedSourceError if that is unknown.
            interrupt: is set then.
        """
        read = WatchedRead(is_gone, interrupt)
        with self._changed:
            self._start()
            self._reads.add(read)
            self._changed.notify_all()  # also if a thread that did not survive a fork waits first
        try:
            yield read
        finally:
            with self._changed:
                self._reads.discard(read)

    def _start(self) -> None:
        # the first use, or the first one after a fork, which threads do not survive
        if self._process != os.getpid():
            self._process = os.getpid()
            self._reads.clear()
            threading.Thread(target=self._run, name="bsrc-topic-watch", daemon=True).start()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: bool(self._reads))
                reads = tuple(self._reads)
            for read in reads:
                self._look(read)
            time.sleep(self._look_every)

    def _look(self, read: WatchedRead) -> None:
        if time.monotonic() - read.moved_at < self._look_after or read.interrupt.is_set:
            return
        try:
            if read.is_gone():
                read.interrupt.set()
        except BalancedSourceError:
            pass  # unknown: the read ends by itself if it stalls


WATCH: Final = TopicWatch()
"""Of this process."""
