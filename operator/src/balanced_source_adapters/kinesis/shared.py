"""What the tasks of a process share of a shard.

How often it may be asked, and iterators to continue with.

A micro-batch takes less time than an iterator lives. So the next task in this process continues
with the iterator that the former one has left, and asks for none. The limits of a shard hold for
all tasks together.
"""

import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from balanced_source.backoff import backoff

INTERVAL: Final = 0.2
"""Seconds between two reads of a shard: it allows five a second."""

BYTES_PER_SECOND: Final = 2 * 1024 * 1024
"""Of a shard."""

IDLE: Final = 0.5
"""Seconds between two reads of a shard that has nothing new: others may read it as well."""

MAX_BACKOFF: Final = 10.0
"""Seconds between two attempts at a shard that keeps failing, at most."""

ITERATOR_LIFETIME: Final = 240.0
"""Seconds for which an iterator is kept; it expires after 300."""

SHARDS: Final = 4096
"""Shards that are remembered."""

POSITIONS: Final = 4
"""Positions of a shard that are remembered with their iterators."""

ShardKey: TypeAlias = tuple[str, ...]
"""Names a shard in all the world, and where reading of it starts."""


@dataclass(slots=True)
class _Known:
    due: float = 0.0
    failures: int = 0
    refused: float | None = None
    tip: tuple[int, int] | None = None
    iterators: "OrderedDict[int, tuple[str, float]]" = field(default_factory=OrderedDict)


class SharedShards:
    """See the module. Threads may share it. Times are of a monotonic clock."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[ShardKey, _Known] = OrderedDict()

    def due(self, key: ShardKey) -> float:
        """Return when the shard may be read next."""
        with self._lock:
            return self._of(key).due

    def take(self, key: ShardKey, now: float) -> bool:
        """Take the turn of a reader; returns whether it may read now."""
        with self._lock:
            known = self._of(key)
            if known.due > now:
                return False
            # Before the request: two tasks of the process must not use the same turn.
            known.due = now + INTERVAL
            return True

    def has_read(self, key: ShardKey, *, now: float, size: int, is_idle: bool) -> None:
        """Note a read that worked.

        Args:
            key: of the shard.
            now: time of the answer.
            size: bytes that it brought.
            is_idle: whether the shard has nothing more.
        """
        with self._lock:
            known = self._of(key)
            known.failures, known.refused = 0, None
            # A shard gives so many bytes a second: a read before that would be throttled.
            known.due = max(
                known.due, now + (IDLE if is_idle else 0.0), now + size / BYTES_PER_SECOND
            )

    def has_failed(self, key: ShardKey, *, now: float) -> float:
        """Note a read that failed; returns the seconds until the next attempt."""
        with self._lock:
            known = self._of(key)
            known.failures += 1
            delay = backoff(known.failures, first=2 * INTERVAL, longest=MAX_BACKOFF)
            known.due = max(known.due, now + delay)
            return delay

    def refused_for(self, key: ShardKey, *, now: float) -> float:
        """Note a read that was refused; returns for how many seconds all reads were."""
        with self._lock:
            known = self._of(key)
            if known.refused is None:
                known.refused = now
            return now - known.refused

    def keep(self, key: ShardKey, position: int, iterator: str, now: float) -> None:
        """Keep the iterator that continues at a position."""
        with self._lock:
            iterators = self._of(key).iterators
            iterators[position] = (iterator, now)
            iterators.move_to_end(position)
            while len(iterators) > POSITIONS:
                iterators.popitem(last=False)

    def note_tip(self, key: ShardKey, position: int, when: int) -> None:
        """Note that a shard has nothing behind a position, and that nothing before it was lost.

        Args:
            key: of the shard.
            position: behind its newest record.
            when: milliseconds since the epoch, by the clock of the service. A monotonic clock
                stands still while the machine sleeps, and records expire.
        """
        with self._lock:
            self._of(key).tip = (position, when)

    def tip(self, key: ShardKey, position: int) -> int | None:
        """Return when the shard had nothing behind a position, at last; None: unknown."""
        with self._lock:
            known = self._of(key).tip
            return known[1] if known is not None and known[0] == position else None

    def iterator(self, key: ShardKey, position: int, now: float) -> str | None:
        """Return the iterator that continues at a position.

        None if there is none that still lives.
        """
        with self._lock:
            iterator, made = self._of(key).iterators.get(position, ("", float("-inf")))
            return iterator if now - made < ITERATOR_LIFETIME else None

    def forget(self, key: ShardKey) -> None:
        """Forget the iterators of a shard: they are of no use any more."""
        with self._lock:
            self._of(key).iterators.clear()

    def _of(self, key: ShardKey) -> _Known:
        known = self._known.setdefault(key, _Known())
        self._known.move_to_end(key)
        while len(self._known) > SHARDS:
            self._known.popitem(last=False)
        return known


OF_PROCESS: Final = SharedShards()
"""Those of this process."""
