"""The watermark of many: the smallest of all that are not idle, and never going back."""

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from balanced_source.api import MIN_WATERMARK
from balanced_source.reader.least import Least

KeyT = TypeVar("KeyT", bound=Hashable)


@dataclass(slots=True)
class _Part:
    watermark: int = MIN_WATERMARK
    is_idle: bool = False


@dataclass(slots=True)
class CombinedWatermark(Generic[KeyT]):
    """Of several parts: splits of a reader, or readers of a source.

    Attributes:
        watermark: of all together; `MIN_WATERMARK` while any active part has none. It stays where
            it is while all are idle, and when a part comes in that is behind it.
        is_idle: whether there is no one to wait for: no part is active.
    """

    watermark: int = MIN_WATERMARK
    is_idle: bool = False
    _parts: dict[KeyT, _Part] = field(default_factory=dict)
    _active: Least[KeyT] = field(default_factory=Least)

    def add(self, key: KeyT) -> None:
        """From now on this part is waited for. One that is there already stays as it is."""
        if key not in self._parts:
            self._parts[key] = _Part()
            self._combine(key)

    def remove(self, key: KeyT) -> None:
        """No one waits for this part any more."""
        if self._parts.pop(key, None) is not None:
            self._combine(key)

    def update(self, key: KeyT, watermark: int) -> None:
        """A part says how far it is; it is active then.

        A smaller watermark than before changes nothing.
        """
        part = self._parts[key]
        # A watermark is a promise, so a part cannot take it back.
        part.watermark, part.is_idle = max(part.watermark, watermark), False
        self._combine(key)

    def mark_idle(self, key: KeyT) -> None:
        """A part has nothing to say for now."""
        self._parts[key].is_idle = True
        self._combine(key)

    def mark_active(self, key: KeyT) -> None:
        """A part is waited for again."""
        self._parts[key].is_idle = False
        self._combine(key)

    def of(self, key: KeyT) -> int:
        """A part's own watermark."""
        return self._parts[key].watermark

    def is_idle_part(self, key: KeyT) -> bool:
        """Whether a part has said that it is idle."""
        return self._parts[key].is_idle

    def _combine(self, changed: KeyT) -> None:
        part = self._parts.get(changed)
        if part is None or part.is_idle:
            self._active.discard(changed)
        else:
            self._active.put(changed, part.watermark)
        slowest = self._active.value
        self.is_idle = bool(self._parts) and slowest is None
        # It stays where it is while all are idle, and when a part comes in that is behind.
        if slowest is not None:
            self.watermark = max(self.watermark, slowest)
