"""Which listings a queue of notifications saves, and when its messages may be deleted."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from balanced_source.api import Json, SecretReader
from balanced_source.connectors.files import (
    PAGE,
    WHOLE_EVERY,
    WINDOW,
    Cursor,
    File,
    ListFiles,
    Store,
)
from balanced_source.connectors.pull import Page
from balanced_source.errors import DiscoveryError
from balanced_source_adapters.files.file_store import FileStore
from balanced_source_adapters.files.notifications import Notifications
from balanced_source_adapters.files.stores import selection

Opened = Callable[[Store, str, SecretReader], Notifications]


class News:
    """What notifications say between two listings.

    Args:
        secrets: resolves the Secret of the store.
        opened: makes the reader of a queue.
    """

    def __init__(self, secrets: SecretReader, opened: Opened = Notifications) -> None:
        self._secrets, self._opened = secrets, opened
        self._queue: Notifications | None = None
        self._place: tuple[Store, str] | None = None
        self._looks = 0
        self._unstored: tuple[Json, tuple[str, ...]] = (None, ())
        self._received: tuple[str, ...] = ()
        self._unfinished: Json = None

    def named(self, call: ListFiles, store: FileStore) -> tuple[File, ...] | None:
        """Return the objects that notifications name; None if the call needs a listing.

        Raises:
            DiscoveryError: the queue or the store does not answer, or refuses to.
        """
        if not call.queue:
            return None
        try:
            return self._named(call, store, self._open(call))
        except DiscoveryError:
            # Credentials may have been renewed since: the next look reads them again.
            self._queue = None
            raise

    def _open(self, call: ListFiles) -> Notifications:
        """Return the reader of the queue, which may be another one than before."""
        place = call.store, call.queue
        if place != self._place:
            # What the former queue has not said is found by a listing.
            self._place, self._queue, self._looks = place, None, 0
            self._unstored = (None, ())
        self._queue = self._queue or self._opened(call.store, call.queue, self._secrets)
        return self._queue

    def _named(
        self, call: ListFiles, store: FileStore, queue: Notifications
    ) -> tuple[File, ...] | None:
        self._delete(call, queue)
        self._looks += 1
        # Between listings every file stays in the window by name, which has room for twice as many
        # as a listing leaves in it.
        is_full = len(Cursor.from_json(call.cursor).window) > 2 * WINDOW - PAGE
        # No notification names what a listing has left for the next page.
        is_unfinished = call.cursor is None or call.cursor == self._unfinished
        if is_unfinished or is_full or self._looks % WHOLE_EVERY == 1:
            return None
        notices = queue.receive()
        if len(notices.paths) > PAGE:
            return None
        try:
            found = tuple(_there(filter(selection(call.paths), notices.paths), store))
        except OSError:
            # A listing says what is wrong with the store. The messages come again.
            return None
        self._received = notices.receipts
        return found

    def note(self, page: Page[Any]) -> None:
        """Take note of the answer to a call: its messages are done when its cursor is stored."""
        self._unfinished = page.cursor if page.has_more else None
        if self._received and not page.refusal:
            self._unstored = (page.cursor, self._received)
        self._received = ()

    def _delete(self, call: ListFiles, queue: Notifications) -> None:
        cursor, receipts = self._unstored
        # The next call starts from the stored cursor. Otherwise the messages come again.
        if receipts and cursor == call.cursor:
            queue.delete(receipts)
        self._unstored = (None, ())


def _there(paths: Iterable[str], store: FileStore) -> Iterator[File]:
    for path in paths:
        if (file := store.stat(path)) is not None:
            yield file
