"""The least of many values that change one at a time.

A heap whose outdated entries are dropped when they come up.
"""

import heapq
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

KeyT = TypeVar("KeyT", bound=Hashable)

_SLACK: Final = 64
"""Outdated entries that are not worth a new heap."""


@dataclass(slots=True)
class Least(Generic[KeyT]):
    """Of the values of all keys. A change costs O(log n) on average, the question nothing."""

    _values: dict[KeyT, tuple[int, int]] = field(default_factory=dict)
    _heap: list[tuple[int, int, KeyT]] = field(default_factory=list)
    _serial: int = 0

    @property
    def value(self) -> int | None:
        """The least value; None without any key."""
        return self._heap[0][0] if self._heap else None

    def put(self, key: KeyT, value: int) -> None:
        """A key has this value from now on."""
        known = self._values.get(key)
        if known is not None and known[0] == value:
            return
        self._serial += 1  # unique, so that keys are never compared
        self._values[key] = (value, self._serial)
        heapq.heappush(self._heap, (value, self._serial, key))
        self._drop()

    def discard(self, key: KeyT) -> None:
        """A key has no value any more; one that has none is ignored."""
        if self._values.pop(key, None) is not None:
            self._drop()

    def _drop(self) -> None:
        # Outdated entries below the top are never popped, so the heap is recreated now and then.
        if len(self._heap) > 2 * len(self._values) + _SLACK:
            self._heap = [(value, serial, key) for key, (value, serial) in self._values.items()]
            heapq.heapify(self._heap)
        while self._heap and self._values.get(self._heap[0][2]) != self._heap[0][:2]:
            heapq.heappop(self._heap)
