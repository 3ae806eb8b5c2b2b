"""`Fetchers` with a thread per split reader.

Results wait in a short queue, so that fetching and emitting overlap.
"""

import threading
from collections import deque
from collections.abc import Callable, Collection, Sequence
from typing import Final, Generic, TypeVar

from balanced_source.api import SourceSplit, SplitId, SplitReader
from balanced_source.errors import ContractViolationError
from balanced_source.reader import Fetched, FetcherSet, SplitFetcher, Threading

E = TypeVar("E")
SplitT = TypeVar("SplitT", bound=SourceSplit)

CAPACITY: Final = 2
"""Results that wait at most; a fetcher with one more holds it until there is room."""

_JOIN: Final = 10.0
"""Seconds that `close` waits for a fetch that does not heed its wake-up."""


class ThreadedFetchers(Generic[E, SplitT]):
    """See `balanced_source.reader.Fetchers`.

    Args:
        make_reader: makes a split reader; it is closed by its thread.
        shape: how splits are spread over split readers.
        notify: called by any thread when a result is there; `SourceReaderContext.notify_available`.
        capacity: see `CAPACITY`.
        may_drift: see `balanced_source.reader.FetcherSet`.
    """

    def __init__(
        self,
        make_reader: Callable[[], SplitReader[E, SplitT]],
        shape: Threading = Threading.ONE_READER,
        *,
        notify: Callable[[], None] = lambda: None,
        capacity: int = CAPACITY,
        may_drift: bool = False,
    ) -> None:
        self._set = FetcherSet(make_reader, shape, may_drift)
        self._notify = notify
        self._capacity = capacity
        self._changed = threading.Condition()
        self._results: deque[Fetched[E]] = deque()
        self._fetching: set[int] = set()
        self._failure: BaseException | None = None
        self._threads: list[threading.Thread] = []
        self._is_closed = False

    def add_splits(self, splits: Sequence[SplitT], generation: int) -> None:
        """See `Fetchers`."""
        with self._changed:
            if self._is_closed:
                raise ContractViolationError("splits were added to a closed reader")
            for fetcher in self._set.add_splits(splits, generation):
                thread = threading.Thread(
                    target=self._run, args=(fetcher,), name="bsrc-fetcher", daemon=True
                )
                self._threads.append(thread)
                thread.start()
            self._interrupt()

    def remove_splits(self, split_ids: Collection[SplitId]) -> None:
        """See `Fetchers`."""
        with self._changed:
            self._set.remove_splits(split_ids)
            self._interrupt()

    def pause_or_resume_splits(
        self, to_pause: Collection[SplitId], to_resume: Collection[SplitId]
    ) -> None:
        """See `Fetchers`."""
        with self._changed:
            self._set.pause_or_resume_splits(to_pause, to_resume)
            self._interrupt()

    def poll(self) -> Fetched[E] | None:
        """See `Fetchers`. What was fetched before a split reader failed comes first."""
        with self._changed:
            # Before a failure: what was fetched is valid, and its positions are emitted with it.
            if self._results:
                # A fetcher may wait for room in the queue.
                self._changed.notify_all()
                return self._results.popleft()
            if self._failure is not None:
                raise self._failure
            return None

    def has_result(self) -> bool:
        """See `Fetchers`."""
        with self._changed:
            return bool(self._results or self._failure)

    def is_idle(self) -> bool:
        """See `Fetchers`."""
        with self._changed:
            return not (self._results or self._fetching or self._set.is_reading())

    def close(self) -> None:
        """See `Fetchers`. Waits for the threads."""
        with self._changed:
            self._is_closed = True
            self._interrupt()
        for thread in self._threads:
            thread.join(_JOIN)

    def _interrupt(self) -> None:
        """Something changed: end the fetches that have something to be told about."""
        self._changed.notify_all()
        for fetcher in self._set.fetchers:
            # Others look at what they were told before they fetch again.
            if id(fetcher) in self._fetching and (self._is_closed or fetcher.has_news()):
                fetcher.reader.wake_up()

    def _run(self, fetcher: SplitFetcher[E, SplitT]) -> None:
        try:
            while self._turn(fetcher):
                pass
        except BaseException as error:  # noqa: BLE001
            # Raised in the reader's own thread by the next poll
            with self._changed:
                self._fetching.discard(id(fetcher))
                self._failure = error
        finally:
            # By its own thread: clients need not allow that another one closes them.
            fetcher.reader.close()
            self._notify()

    def _turn(self, fetcher: SplitFetcher[E, SplitT]) -> bool:
        """One turn of a fetcher; False when it was the last."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or fetcher.has_work())
            if self._is_closed:
                return False
            turn = fetcher.begin()
            self._fetching.add(id(fetcher))
        # Without the lock: this blocks, and the reader must be able to poll meanwhile.
        fetched = fetcher.execute(turn)
        with self._changed:
            # A full queue holds back its fetcher, so memory stays bounded however slow the sink is.
            self._changed.wait_for(lambda: self._is_closed or len(self._results) < self._capacity)
            fetcher.end(fetched)
            self._fetching.discard(id(fetcher))
            if fetched is not None:
                self._results.append(fetched)
            is_over = self._set.retire(fetcher)
        self._notify()
        return not is_over
