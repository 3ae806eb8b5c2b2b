"""What outlives a micro-batch: Spark reuses its Python workers, so what a module holds survives.

Spark gives a reader's task to any idle worker, so a worker may hold what another one will use, or never use it again.
Hence a bound on how many are kept, and an age after which they are closed: a thread looks, for an idle worker runs no
code of ours.
"""

import os
import threading
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Final, Generic, Protocol, TypeVar

MAX_KEPT: Final = 4
"""Consumers that one worker keeps; the one that was used longest ago goes first."""

MAX_IDLE: Final = 30.0
"""Seconds after which an unused consumer is closed. Spark ends an idle worker after a minute."""


class Closable(Protocol):
    """Something with connections."""

    def close(self) -> None: ...  # pragma: no cover


C = TypeVar("C", bound=Closable)


class Pool(Generic[C]):
    """Consumers that are not in use. Each is lent to one user at a time."""

    def __init__(self, *, max_kept: int = MAX_KEPT, max_idle: float = MAX_IDLE) -> None:
        self._max_kept = max_kept
        self._max_idle = max_idle
        self._lock = threading.Lock()
        self._kept: list[tuple[float, Hashable, C]] = []
        self._process = os.getpid()
        self._sweeper: threading.Thread | None = None

    @contextmanager
    def borrowed(self, key: Hashable, make: Callable[[], C]) -> Iterator[C]:
        """One that was kept under this key, else a new one; kept afterwards, unless its use failed."""
        lent = self._take(key)
        if lent is None:
            lent = make()
        try:
            yield lent
        except BaseException:
            lent.close()
            raise
        self._put(key, lent)

    def idle(self) -> list[C]:
        """All that are kept."""
        with self._lock:
            return [kept for _, _, kept in self._kept]

    def sweep(self, now: float) -> None:
        """Close what was not used for too long."""
        with self._lock:
            old = [kept for used, _, kept in self._kept if now - used >= self._max_idle]
            self._kept = [entry for entry in self._kept if now - entry[0] < self._max_idle]
        for kept in old:
            kept.close()

    def _take(self, key: Hashable) -> C | None:
        with self._lock:
            if self._process != os.getpid():  # after a fork: librdkafka's threads stayed behind
                self._kept, self._process, self._sweeper = [], os.getpid(), None
            for number, (_, kept_key, kept) in enumerate(self._kept):
                if kept_key == key:
                    del self._kept[number]
                    return kept
        return None

    def _put(self, key: Hashable, lent: C) -> None:
        with self._lock:
            self._kept.append((time.monotonic(), key, lent))
            surplus = [kept for _, _, kept in self._kept[: -self._max_kept]]
            del self._kept[: -self._max_kept]
            self._start_sweeper()
        for kept in surplus:
            kept.close()

    def _start_sweeper(self) -> None:
        if self._sweeper is None:
            self._sweeper = threading.Thread(target=self._keep_sweeping, name="bsrc-idle-consumers", daemon=True)
            self._sweeper.start()

    def _keep_sweeping(self) -> None:
        while True:
            time.sleep(self._max_idle / 2)
            self.sweep(time.monotonic())
