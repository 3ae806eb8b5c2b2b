"""`Fetchers` that need no thread, for tests."""

from collections.abc import Callable, Collection, Sequence
from typing import Generic, TypeVar

from balanced_source.api import SourceSplit, SplitId, SplitReader
from balanced_source.reader import Fetched, FetcherSet, Threading

E = TypeVar("E")
SplitT = TypeVar("SplitT", bound=SourceSplit)


class InlineFetchers(Generic[E, SplitT]):
    """`Fetchers` without any thread: `poll` fetches.

    For tests of split readers that do not block.

    Args:
        make_reader: makes a split reader.
        threading: how splits are spread over split readers.
        may_drift: see `FetcherSet`.
    """

    def __init__(
        self,
        make_reader: Callable[[], SplitReader[E, SplitT]],
        threading: Threading = Threading.ONE_READER,
        *,
        may_drift: bool = False,
    ) -> None:
        self._set = FetcherSet(make_reader, threading, may_drift)

    def add_splits(self, splits: Sequence[SplitT], generation: int) -> None:
        """See `Fetchers`."""
        self._set.add_splits(splits, generation)

    def remove_splits(self, split_ids: Collection[SplitId]) -> None:
        """See `Fetchers`."""
        self._set.remove_splits(split_ids)

    def pause_or_resume_splits(
        self, to_pause: Collection[SplitId], to_resume: Collection[SplitId]
    ) -> None:
        """See `Fetchers`."""
        self._set.pause_or_resume_splits(to_pause, to_resume)

    def poll(self) -> Fetched[E] | None:
        """See `Fetchers`."""
        # A copy, because the list is sorted and shortened in the loop.
        for fetcher in list(self._set.fetchers):
            if not fetcher.has_work():
                continue
            fetched = fetcher.execute(fetcher.begin())
            fetcher.end(fetched)
            self._set.fetchers.sort(key=lambda f: f is fetcher)  # the others come first next time
            if self._set.retire(fetcher):
                fetcher.reader.close()
            if fetched is not None:
                return fetched
        return None

    def has_result(self) -> bool:
        """See `Fetchers`."""
        return any(fetcher.has_work() for fetcher in self._set.fetchers)

    def is_idle(self) -> bool:
        """See `Fetchers`."""
        return not self._set.is_reading()

    def close(self) -> None:
        """See `Fetchers`."""
        for fetcher in self._set.fetchers:
            fetcher.reader.close()
        self._set.fetchers.clear()
