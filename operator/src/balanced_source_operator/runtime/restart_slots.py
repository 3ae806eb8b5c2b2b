"""How many sources of the process restart at once because their settings changed."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from balanced_source_operator.resources.identity import Identity
from balanced_source_operator.settings import MAX_RESTARTS

PATIENCE: Final = 600.0
"""Seconds after which a source that does not run again holds up no other one any more."""


@dataclass(slots=True)
class RestartSlots:
    """Of a process. A source has its slot until all its applications run again.

    Attributes:
        limit: number of sources that may restart at once.
    """

    limit: int = MAX_RESTARTS
    _taken: dict[Identity, float] = field(default_factory=dict)
    _waiting: dict[Identity, Callable[[], None]] = field(default_factory=dict)

    def take(self, source: Identity, wake: Callable[[], None]) -> bool:
        """Return whether a source may restart now.

        If not, `wake` is called when it should ask again.
        """
        now = time.monotonic()
        self._taken = {other: at for other, at in self._taken.items() if now - at < PATIENCE}
        # Those who asked before come first, even if they have not been woken yet.
        ahead = list(self._waiting).index(source) if source in self._waiting else len(self._waiting)
        if source not in self._taken and len(self._taken) + ahead >= self.limit:
            # Its place stays the first one that it got, however often it asks.
            self._waiting.setdefault(source, wake)
            return False
        self._waiting.pop(source, None)
        self._taken.setdefault(source, now)
        return True

    def resume(self, source: Identity) -> None:
        """Count a source whose restart an operator before this one has begun."""
        self._taken.setdefault(source, time.monotonic())

    def has(self, source: Identity) -> bool:
        """Return whether a source has a slot."""
        return source in self._taken

    def withdraw(self, source: Identity) -> None:
        """Give back the place of a source in the queue; wakes those that are next."""
        # Else a source that asks no more, because its application has failed meanwhile, would stay
        # ahead of all others.
        if self._waiting.pop(source, None) is not None:
            self._wake_next()

    def release(self, source: Identity) -> None:
        """Give back the slot of a source, and its place in the queue; wakes those that are next."""
        had_slot = self._taken.pop(source, None) is not None
        # A source may be woken and not need a restart any more. Then it is the turn of the next
        # one, which would otherwise ask again only at its next resync.
        if self._waiting.pop(source, None) is not None or had_slot:
            self._wake_next()

    def _wake_next(self) -> None:
        for wake in list(self._waiting.values())[: max(0, self.limit - len(self._taken))]:
            wake()
