"""Split readers with what waits to be told to them.

Pure, so that a thread, or no one else, can drive them.

Three shapes of work, for one reader: one split after another; one split reader over many splits;
one split reader per split. The code that drives them guards `begin`, `end` and everything that
changes splits by one lock, and calls `execute` without it.
"""

import enum
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from balanced_source.api import (
    RecordsWithSplitIds,
    SourceSplit,
    SplitId,
    SplitReader,
    SplitsAddition,
    SplitsRemoval,
)
from balanced_source.errors import ContractViolationError

E = TypeVar("E")
SplitT = TypeVar("SplitT", bound=SourceSplit)
SplitT_contra = TypeVar("SplitT_contra", bound=SourceSplit, contravariant=True)


class Threading(enum.Enum):
    """How splits of one reader are spread over split readers."""

    ONE_AFTER_ANOTHER = "OneAfterAnother"
    ONE_READER = "OneReader"
    ONE_PER_SPLIT = "OnePerSplit"


@dataclass(frozen=True, slots=True)
class Fetched(Generic[E]):
    """Result of one fetch.

    Attributes:
        records: what it brought.
        generations: split → the addition that it was read for; records of a split that was taken
            away and given back meanwhile belong to no one.
    """

    records: RecordsWithSplitIds[E]
    generations: Mapping[SplitId, int]


class Fetchers(Protocol[E, SplitT_contra]):
    """What a `SourceReaderBase` needs of the code that drives its split readers.

    No method blocks for long.
    """

    def add_splits(self, splits: Sequence[SplitT_contra], generation: int) -> None:
        """Read these from now on."""
        ...

    def remove_splits(self, split_ids: Collection[SplitId]) -> None:
        """Read these no more; what is on its way may still come."""
        ...

    def pause_or_resume_splits(
        self, to_pause: Collection[SplitId], to_resume: Collection[SplitId]
    ) -> None:
        """Stop reading some for a while, continue with others."""
        ...

    def poll(self) -> "Fetched[E] | None":
        """The next result, if there is one.

        Raises:
            Exception: a split reader failed.
        """
        ...

    def has_result(self) -> bool:
        """Whether `poll` would return one, or raise, now."""
        ...

    def is_idle(self) -> bool:
        """Whether no split is left to be read and no result waits."""
        ...

    def close(self) -> None:
        """Close all split readers."""
        ...


@dataclass(frozen=True, slots=True)
class FetchInstructions(Generic[SplitT]):
    """What a split reader is told before its next fetch."""

    changes: tuple[SplitsAddition[SplitT] | SplitsRemoval[SplitT], ...]
    to_pause: tuple[SplitT, ...]
    to_resume: tuple[SplitT, ...]
    generations: Mapping[SplitId, int]
    is_fetching: bool


@dataclass(slots=True)
class SplitFetcher(Generic[E, SplitT]):
    """One split reader.

    Attributes:
        reader: the split reader.
        is_sequential: whether it is told of one split at a time.
    """

    reader: SplitReader[E, SplitT]
    is_sequential: bool = False
    _waiting: dict[SplitId, tuple[SplitT, int]] = field(default_factory=dict)
    _active: dict[SplitId, tuple[SplitT, int]] = field(default_factory=dict)
    _removed: dict[SplitId, SplitT] = field(default_factory=dict)
    _paused: set[SplitId] = field(default_factory=set)
    _told_paused: set[SplitId] = field(default_factory=set)

    @property
    def split_ids(self) -> frozenset[SplitId]:
        """Splits that it reads or will read."""
        return frozenset({**self._waiting, **self._active})

    def add_splits(self, splits: Iterable[SplitT], generation: int) -> None:
        """Read these as well; the removal of an earlier split with the same id is told first."""
        for split in splits:
            if split.split_id in self._waiting or split.split_id in self._active:
                raise ContractViolationError(f"split {split.split_id} was added twice")
            self._waiting[split.split_id] = (split, generation)

    def remove_splits(self, split_ids: Iterable[SplitId]) -> None:
        """Forget these; one that the split reader never heard of needs not be told."""
        for split_id in split_ids:
            self._waiting.pop(split_id, None)
            # Only what the split reader was told of has to be taken from it.
            if (known := self._active.pop(split_id, None)) is not None:
                self._removed[split_id] = known[0]
            self._paused.discard(split_id)
            self._told_paused.discard(split_id)

    def pause_or_resume_splits(
        self, to_pause: Collection[SplitId], to_resume: Collection[SplitId]
    ) -> None:
        """Told before the next fetch, as far as it changes anything."""
        self._paused = (self._paused | (set(to_pause) & self.split_ids)) - set(to_resume)

    def has_work(self) -> bool:
        """Whether a turn would do anything: fetch, or tell something."""
        return self._is_reading() or self.has_news()

    def has_news(self) -> bool:
        """Whether there is something to tell."""
        return bool(self._removed or self._next_additions() or any(self._pause_changes()))

    def begin(self) -> FetchInstructions[SplitT]:
        """What to do next; noted as told."""
        removals = SplitsRemoval(tuple(self._removed.values()))
        additions = self._next_additions()
        self._removed.clear()
        # Noted before the fetch, which runs without the lock: a removal meanwhile must find the
        # split.
        for split_id in additions:
            self._active[split_id] = self._waiting.pop(split_id)
        added = SplitsAddition(tuple(self._active[split_id][0] for split_id in additions))
        to_pause, to_resume = self._pause_changes()
        self._told_paused = self._paused & self._active.keys()
        return FetchInstructions(
            # Removals first: a split that was taken away and given back is another addition.
            changes=tuple(change for change in (removals, added) if change.splits),
            to_pause=to_pause,
            to_resume=to_resume,
            # As of now: records of a split that is taken away during the fetch belong to no one.
            generations={
                split_id: generation for split_id, (_, generation) in self._active.items()
            },
            is_fetching=self._is_reading(),
        )

    def execute(self, turn: FetchInstructions[SplitT]) -> Fetched[E] | None:
        """Do it; this is what may block."""
        for change in turn.changes:
            self.reader.handle_splits_changes(change)
        if turn.to_pause or turn.to_resume:
            self.reader.pause_or_resume_splits(turn.to_pause, turn.to_resume)
        if not turn.is_fetching:
            return None
        records: object = self.reader.fetch()
        if not isinstance(records, RecordsWithSplitIds):
            raise ContractViolationError(
                f"fetch of {type(self.reader).__name__} returned a {type(records).__name__}, and"
                " RecordsBySplits, or other RecordsWithSplitIds, were expected"
            )
        return Fetched(records, turn.generations)

    def end(self, fetched: Fetched[E] | None) -> None:
        """Take note of finished splits.

        One that was removed and added again meanwhile waits for its turn.
        """
        if fetched is None:
            return
        for split_id in fetched.records.finished_splits():
            # A split that was removed and added again waits in another table, and has not ended.
            if self._active.pop(split_id, None) is not None:
                self._paused.discard(split_id)
                self._told_paused.discard(split_id)

    def _next_additions(self) -> list[SplitId]:
        if not self.is_sequential:
            return list(self._waiting)
        # In turn: the next split is told when the reader is done with the one before.
        return [] if self._active else list(self._waiting)[:1]

    def _pause_changes(self) -> tuple[tuple[SplitT, ...], tuple[SplitT, ...]]:
        # Only splits that the reader knows by then: upstream's consumer refused to pause what was
        # not assigned (FLINK-39728).
        paused = self._paused & {*self._active, *self._next_additions()}
        known = {**self._waiting, **self._active}
        return (
            tuple(known[s][0] for s in sorted(paused - self._told_paused)),
            tuple(known[s][0] for s in sorted(self._told_paused - paused)),
        )

    def _is_reading(self) -> bool:
        return bool(self._active.keys() - self._paused)


@dataclass(slots=True)
class FetcherSet(Generic[E, SplitT]):
    """All split readers of one reader, and which splits each of them has.

    Attributes:
        make_reader: makes a split reader.
        threading: how splits are spread over them.
        may_drift: whether splits that must be paused continue where their split reader cannot
            pause (`SplitReader.can_pause`); otherwise that is an error. It is Flink's
            ``pipeline.watermark-alignment.allow-unaligned-source-splits``.
    """

    make_reader: Callable[[], SplitReader[E, SplitT]]
    threading: Threading
    may_drift: bool = False
    fetchers: list[SplitFetcher[E, SplitT]] = field(default_factory=list)

    def add_splits(
        self, splits: Sequence[SplitT], generation: int
    ) -> list[SplitFetcher[E, SplitT]]:
        """Spread them; returns the fetchers that were made for them."""
        fresh: list[SplitFetcher[E, SplitT]] = []
        for share in (
            [[s] for s in splits] if self.threading is Threading.ONE_PER_SPLIT else [splits]
        ):
            fetcher = self._home_of(share[0].split_id) if share else None
            if share and fetcher is None:
                fetcher = SplitFetcher(
                    self.make_reader(), self.threading is Threading.ONE_AFTER_ANOTHER
                )
                fresh.append(fetcher)
                self.fetchers.append(fetcher)
            if fetcher is not None:
                fetcher.add_splits(share, generation)
        return fresh

    def remove_splits(self, split_ids: Collection[SplitId]) -> None:
        """See `Fetchers`."""
        for fetcher in self.fetchers:
            fetcher.remove_splits(split_ids)

    def pause_or_resume_splits(
        self, to_pause: Collection[SplitId], to_resume: Collection[SplitId]
    ) -> None:
        """See `Fetchers`."""
        for fetcher in self.fetchers:
            # Where drifting is not allowed, a split reader that cannot pause must say so by its
            # error.
            if fetcher.reader.can_pause or not self.may_drift:
                fetcher.pause_or_resume_splits(to_pause, to_resume)

    def retire(self, fetcher: SplitFetcher[E, SplitT]) -> bool:
        """Whether a fetcher is not needed any more, and was taken out.

        The code that drives it closes its split reader.
        """
        if self.threading is not Threading.ONE_PER_SPLIT or fetcher.split_ids:
            return False
        self.fetchers.remove(fetcher)
        return True

    def is_reading(self) -> bool:
        """Whether any split is left."""
        return any(fetcher.split_ids for fetcher in self.fetchers)

    def _home_of(self, split_id: SplitId) -> SplitFetcher[E, SplitT] | None:
        if self.threading is not Threading.ONE_PER_SPLIT:
            return self.fetchers[0] if self.fetchers else None
        return next((f for f in self.fetchers if split_id in f.split_ids), None)
