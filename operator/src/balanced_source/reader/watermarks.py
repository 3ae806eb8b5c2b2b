"""The watermark of many: the smallest of all that are not idle, and never going back."""

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from balanced_source.api import MIN_WATERMARK

KeyT = TypeVar("KeyT", bound=Hashable)


@dataclass(slots=True)
class _Part:
    watermark: int = MIN_WATERMARK
    is_idle: bool = False


@dataclass(slots=True)
class CombinedWatermark(Generic[KeyT]):
    """Of several parts: splits of a reader, or readers of a source.

    Attributes:
        watermark: of all together; `MIN_WATERMARK` while any active part has none. It stays where it is while all are
            idle, and when a part comes in that is behind it.
        is_idle: whether there is nobody to wait for: no part is active.
    """

    watermark: int = MIN_WATERMARK
    is_idle: bool = False
    _parts: dict[KeyT, _Part] = field(default_factory=dict)

    def add(self, key: KeyT) -> None:
        """From now on this part is waited for. One that is there already stays as it is."""
        self._parts.setdefault(key, _Part())
        self._combine()

    def remove(self, key: KeyT) -> None:
        """Nobody waits for this part any more."""
        if self._parts.pop(key, None) is not None:
            self._combine()

    def update(self, key: KeyT, watermark: int) -> None:
        """A part says how far it is; it is active then. A smaller watermark than before changes nothing."""
        part = self._parts[key]
        part.watermark, part.is_idle = max(part.watermark, watermark), False
        self._combine()

    def mark_idle(self, key: KeyT) -> None:
        """A part has nothing to say for now."""
        self._parts[key].is_idle = True
        self._combine()

    def mark_active(self, key: KeyT) -> None:
        """A part is waited for again."""
        self._parts[key].is_idle = False
        self._combine()

    def of(self, key: KeyT) -> int:
        """A part's own watermark."""
        return self._parts[key].watermark

    def is_idle_part(self, key: KeyT) -> bool:
        """Whether a part has said that it is idle."""
        return self._parts[key].is_idle

    def _combine(self) -> None:
        active = [part.watermark for part in self._parts.values() if not part.is_idle]
        self.is_idle = bool(self._parts) and not active
        if active:
            self.watermark = max(self.watermark, min(active))


@dataclass(slots=True)
class IdlenessTimer:
    """Tells when something has been silent for too long. Time is what the caller says.

    Attributes:
        timeout: seconds.
    """

    timeout: float
    _last: float | None = None

    def active(self, now: float) -> None:
        """Something came."""
        self._last = now

    def is_idle(self, now: float) -> bool:
        """Whether nothing came for `timeout` seconds, since the last time or since it was first asked."""
        if self._last is None:
            self._last = now
        return now - self._last >= self.timeout
