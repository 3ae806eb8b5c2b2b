"""Tells of code of a connector that does not return: it raises nothing that could be told.

Imported by tasks, so it imports little.
"""

import os
import threading
import time
from collections.abc import Callable
from typing import Final
from weakref import WeakSet

HANGS: Final = 60.0
"""Seconds after which a call is told of. Readers may wait for their servers for a while."""

_LOOK: Final = 5.0
"""Seconds between two looks."""


class CallWatch:
    """One method of an object of a connector; one thread at a time is in it.

    Attributes:
        since: when the call began that runs now, by the monotonic clock; 0 while none does.

    Args:
        tell: is told for how many seconds the method has been running, and of its end with None.
    """

    __slots__ = ("__weakref__", "_tell", "_told_of", "since")

    def __init__(self, tell: Callable[[float | None], None]) -> None:
        self.since = 0.0
        self._told_of = 0.0
        self._tell = tell
        _Watcher.of_this_process().add(self)

    def look(self, now: float) -> None:
        """Tell of the call if it takes too long, once. In the thread of the watcher."""
        since = self.since
        if since and now - since >= HANGS:
            if self._told_of != since:
                self._told_of = since
                self._tell(now - since)
        elif self._told_of:
            self._told_of = 0.0
            self._tell(None)


class _Watcher:
    """One thread that looks at all watches of a process."""

    _made: "_Watcher | None" = None

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._watches: WeakSet[CallWatch] = WeakSet()
        threading.Thread(target=self._watch, name="bsrc-calls", daemon=True).start()

    @classmethod
    def of_this_process(cls) -> "_Watcher":
        # Threads do not survive a fork, by which Spark makes the workers of tasks.
        if cls._made is None or cls._made._pid != os.getpid():  # noqa: SLF001 - its own class
            cls._made = cls()
        return cls._made

    def add(self, watch: CallWatch) -> None:
        with self._lock:
            self._watches.add(watch)

    def _watch(self) -> None:
        while True:
            time.sleep(_LOOK)
            self.look(time.monotonic())

    def look(self, now: float) -> None:
        with self._lock:
            watches = list(self._watches)
        for watch in watches:
            watch.look(now)
