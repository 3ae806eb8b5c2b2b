"""What outlives a micro-batch: Spark reuses its Python workers, so what a module holds survives.

Spark gives a reader's task to any idle worker, so a worker may hold what another one will use, or
never use it again. Hence a bound on how many consumers are kept, and an age after which they are
closed: a thread looks, for an idle worker runs no code of ours.

A worker may serve more readers than it keeps consumers. A consumer is then handed on to the next
reader: making another one, and closing one for it, takes half a second, which is many times what a
small micro-batch takes.
"""

import os
import threading
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar

MAX_KEPT: Final = 4
"""Consumers that one worker keeps; with more readers, the one that was used longest ago is handed
on."""

MAX_IDLE: Final = 30.0
"""Seconds after which an unused consumer is closed. Spark ends an idle worker after a minute."""


class Closable(Protocol):
    """Something with connections."""

    def close(self) -> Any: ...  # pragma: no cover


C = TypeVar("C", bound=Closable)


def _nothing(lent: Closable) -> None:
    """A consumer that holds nothing of its former user needs no preparation."""
    del lent


@dataclass(frozen=True, slots=True, kw_only=True)
class _IdleConsumer(Generic[C]):
    consumer: C
    key: Hashable
    owner: Hashable
    used: float


class Pool(Generic[C]):
    """Consumers that are not in use. Each is lent to one user at a time.

    Args:
        max_kept: see `MAX_KEPT`.
        max_idle: see `MAX_IDLE`.
        hand_on: makes a consumer forget what it has fetched for its former owner.
    """

    def __init__(
        self,
        *,
        max_kept: int = MAX_KEPT,
        max_idle: float = MAX_IDLE,
        hand_on: Callable[[C], Any] = _nothing,
    ) -> None:
        self._max_kept = max_kept
        self._max_idle = max_idle
        self._hand_on = hand_on
        self._lock = threading.Lock()
        self._kept: list[_IdleConsumer[C]] = []
        self._process = os.getpid()
        self._sweeper: threading.Thread | None = None

    @contextmanager
    def borrowed(
        self,
        key: Hashable,
        make: Callable[[], C],
        *,
        owner: Hashable = None,
        begin: Callable[[C], Any] = _nothing,
    ) -> Iterator[C]:
        """Lend a consumer; it is kept afterwards, unless its use failed.

        Args:
            begin: sends a consumer to where its use begins. If a kept one cannot go there, a new
                one is lent: while no one looked, librdkafka may have given up a partition, for a
                log that was cut for example, and refuses to move there.
            key: consumers of one key are interchangeable.
            make: makes a consumer.
            owner: gets the consumer that it used last, if that is kept; else a new one while there
                is room, else the one of the same key that was used longest ago.
        """
        kept, is_other = self._take(key, owner)
        lent = (
            kept if kept is not None and self._can_begin(kept, begin, is_other=is_other) else None
        )
        is_new = lent is None
        if lent is None:
            lent = make()
        try:
            if is_new:
                begin(lent)
            yield lent
        except BaseException:
            # After a failure no one knows what it has fetched, or where it is.
            lent.close()
            raise
        self._put(_IdleConsumer(consumer=lent, key=key, owner=owner, used=time.monotonic()))

    def idle(self) -> list[C]:
        """Return all that are kept."""
        with self._lock:
            return [kept.consumer for kept in self._kept]

    def sweep(self, now: float) -> None:
        """Close what was not used for too long."""
        with self._lock:
            old = [kept for kept in self._kept if now - kept.used >= self._max_idle]
            self._kept = [kept for kept in self._kept if now - kept.used < self._max_idle]
        _close(old)

    def _take(self, key: Hashable, owner: Hashable) -> tuple[C | None, bool]:
        """Return a consumer that fits, if there is one, and whether it was another owner's."""
        with self._lock:
            if self._process != os.getpid():  # after a fork: librdkafka's threads stayed behind
                self._kept, self._process, self._sweeper = [], os.getpid(), None
            fitting = [kept for kept in self._kept if kept.key == key]
            own = next((kept for kept in fitting if kept.owner == owner), None)
            is_full = len(self._kept) >= self._max_kept
            # The reader's own consumer has fetched ahead for it; another one's is only taken for
            # want of room.
            taken = own or (fitting[0] if fitting and is_full else None)
            if taken is None:
                return None, False
            # Lent to one user at a time: two would move each other's positions.
            self._kept.remove(taken)
            return taken.consumer, own is None

    def _can_begin(self, kept: C, begin: Callable[[C], Any], *, is_other: bool) -> bool:
        """Prepare a kept consumer for its next use.

        Returns False if it cannot be used, and closes it then.
        """
        try:
            if is_other:
                self._hand_on(kept)
            begin(kept)
        except Exception:  # noqa: BLE001 - if it is not the consumer's fault, a new one says so too
            with suppress(Exception):
                kept.close()
            return False
        return True

    def _put(self, lent: _IdleConsumer[C]) -> None:
        with self._lock:
            self._kept.append(lent)
            surplus = self._kept[: -self._max_kept]
            del self._kept[: -self._max_kept]
            self._start_sweeper()
        _close(surplus)

    def _start_sweeper(self) -> None:
        if self._sweeper is None:
            self._sweeper = threading.Thread(
                target=self._keep_sweeping, name="bsrc-idle-consumers", daemon=True
            )
            self._sweeper.start()

    def _keep_sweeping(self) -> None:
        while True:
            time.sleep(self._max_idle / 2)
            self.sweep(time.monotonic())


def _close(all_of: list[_IdleConsumer[C]]) -> None:
    for kept in all_of:
        with suppress(Exception):  # one that fails to close must not keep the others open
            kept.consumer.close()
