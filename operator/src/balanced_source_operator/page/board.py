"""All sources that the page shows. Used on one event loop."""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

import structlog

from balanced_source_operator.page.exhibit import Exhibit
from balanced_source_operator.page.series import SPACING
from balanced_source_operator.resources.identity import Identity
from balanced_source_operator.runtime.audience import Look

log = structlog.get_logger(__name__)

Key = tuple[str, str]
"""Namespace and name of a source; the namespace is empty in local mode."""

_PAUSE_EVERY: Final = 20
"""Sources that are sampled before other tasks of the process have their turn."""


class Shown(NamedTuple):
    """A source on the board.

    Attributes:
        uid: of the source.
        exhibit: what is kept of it.
        look: returns what there is of it now.
        version: of the board when the source changed last.
    """

    uid: str
    exhibit: Exhibit
    look: Look
    version: int


class StatusBoard:
    """An `Audience`.

    Args:
        clock: returns seconds since the epoch.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._shown: dict[Key, Shown] = {}
        self._watchers: dict[Key, int] = {}
        self._wakes: set[asyncio.Event] = set()
        self.version = 0

    def turned(self, source: Identity, look: Look) -> None:
        """See `Audience`."""
        key = (source.namespace, source.name)
        known = self._shown.get(key)
        exhibit = known.exhibit if known is not None and known.uid == source.uid else Exhibit(*key)
        self._note(
            key, Shown(source.uid, exhibit, look, 0), lambda: exhibit.take(look(), self._clock())
        )

    def forget(self, source: Identity) -> None:
        """See `Audience`. A source of the same name that was created since stays."""
        key = (source.namespace, source.name)
        known = self._shown.get(key)
        if known is not None and known.uid == source.uid:
            del self._shown[key]
            self.wake()

    def keys(self) -> list[Key]:
        """Return all sources, sorted."""
        return sorted(self._shown)

    def get(self, key: Key) -> Shown | None:
        """Return a source; None if there is none."""
        return self._shown.get(key)

    async def sample_for_ever(self) -> None:
        """Add a point to each series every ten seconds."""
        while True:
            await asyncio.sleep(SPACING)
            for number, key in enumerate(self.keys()):
                self.sample(key)
                if number % _PAUSE_EVERY == 0:
                    await asyncio.sleep(0)

    def sample(self, key: Key) -> None:
        """Add a point to the series of a source, if it is still there."""
        shown = self._shown.get(key)
        if shown is not None:
            self._note(key, shown, lambda: shown.exhibit.sample(shown.look(), self._clock()))

    @contextmanager
    def watching(self, key: Key | None) -> Iterator[asyncio.Event]:
        """Yield an event that is set at each change.

        What is kept per split of `key` goes with its last watcher.
        """
        wake = asyncio.Event()
        self._wakes.add(wake)
        if key is not None:
            self._watchers[key] = self._watchers.get(key, 0) + 1
        try:
            yield wake
        finally:
            self._wakes.discard(wake)
            if key is not None:
                self._leave(key)

    def _leave(self, key: Key) -> None:
        self._watchers[key] -= 1
        if not self._watchers[key]:
            del self._watchers[key]
            if (shown := self._shown.get(key)) is not None:
                shown.exhibit.forget_splits()

    def _note(self, key: Key, shown: Shown, take: Callable[[], None]) -> None:
        """Take something over. A defect of the page must not disturb what it shows."""
        try:
            take()
        except Exception:
            log.exception("the status page cannot show this source", namespace=key[0], name=key[1])
        self.wake()
        self._shown[key] = shown._replace(version=self.version)

    def wake(self) -> None:
        """Tell all viewers to look again."""
        self.version += 1
        for wake in self._wakes:
            wake.set()
