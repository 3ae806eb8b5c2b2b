"""The small contract that most connectors implement.

Fetch records of given splits (FLIP-27 ``SplitReader``).

A `SplitReader` knows nothing of checkpoints, events, watermarks or threads;
`balanced_source.reader` adds them.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

from balanced_source.api.output import SourceOutput
from balanced_source.api.splits import SourceSplit, SplitId
from balanced_source.errors import ContractViolationError

E = TypeVar("E")
T = TypeVar("T")
SplitT = TypeVar("SplitT", bound=SourceSplit)
StateT = TypeVar("StateT")


# Without slots: Python 3.11 cannot make a frozen class with slots as `SplitsAddition[…](…)`.
@dataclass(frozen=True)
class SplitsAddition(Generic[SplitT]):
    """Splits that the reader gets in addition; none of them is one that it has."""

    splits: tuple[SplitT, ...]


# Without slots: Python 3.11 cannot make a frozen class with slots as `SplitsRemoval[…](…)`.
@dataclass(frozen=True)
class SplitsRemoval(Generic[SplitT]):
    """Splits that are taken away, because readers became more or fewer.

    The reader may have finished some already.
    """

    splits: tuple[SplitT, ...]


SplitsChange: TypeAlias = SplitsAddition[SplitT] | SplitsRemoval[SplitT]


class RecordsWithSplitIds(ABC, Generic[E]):
    """What one `SplitReader.fetch` brought: records by split, and which splits came to their end.

    It is gone through once, by one thread: `next_split`, then `next_record_from_split` until None,
    and again.
    """

    @abstractmethod
    def next_split(self) -> SplitId | None:
        """Go to the next split with records; None when there is none left.

        Rest of the split before is skipped.
        """

    @abstractmethod
    def next_record_from_split(self) -> E | None:
        """The next record of the present split; None when there is none left.

        Records themselves are never None.

        Called only after `next_split` returned a split.
        """

    @abstractmethod
    def finished_splits(self) -> frozenset[SplitId]:
        """Splits that have no further record after the ones in here.

        Known from the start, the same at any time.
        """

    def recycle(self) -> None:
        """Called once, when everything was taken out: buffers may be used again.

        Override it only if there are such buffers: rows are made of all records first, so Arrow
        batches have no more records than a fetch brings.
        """


class SplitReader(ABC, Generic[E, SplitT]):
    """Fetches records of one or more splits.

    One thread calls everything but `wake_up`; nothing is called any more after `close`.
    """

    @abstractmethod
    def fetch(self) -> RecordsWithSplitIds[E]:
        """Bring records of the splits that are assigned and not paused.

        Called again and again while there is such a split. May block until something is there, is
        then ended by `wake_up`, and may return nothing at any time. On return: records of a split
        are in its order and follow those of the fetch before without a gap; a split with a stopping
        position that was reached is in `finished_splits` exactly once, and no record of it comes
        afterwards.

        Raises:
            Exception: the reader cannot continue; it fails the source reader, which starts over
                from its positions.
        """

    @abstractmethod
    def handle_splits_changes(self, change: SplitsChange[SplitT]) -> None:
        """Take note of added or removed splits; must not block.

        Called between fetches. On return an added split is read from `SourceSplit.position` on by
        the next fetches, whatever was read of a split with this id before; one that is at its end
        already finishes without any record. A removed one is not read any more. Removal of a split
        that the reader does not have changes nothing.
        """

    @abstractmethod
    def wake_up(self) -> None:
        """End a `fetch` that blocks, or the next one if none does: a wake-up is never lost.

        Called by any thread, at any time before `close`. Must return at once. The fetch returns
        what it has, maybe nothing; no record is lost by it.
        """

    @property
    def can_pause(self) -> bool:
        """Whether `pause_or_resume_splits` does something: it was overridden."""
        return type(self).pause_or_resume_splits is not SplitReader.pause_or_resume_splits

    def pause_or_resume_splits(
        self, to_pause: Collection[SplitT], to_resume: Collection[SplitT]
    ) -> None:
        """Stop reading some splits for a while, so that the others can catch up in event time.

        Continue with others.

        Called between fetches, with assigned splits only. Pausing a paused split changes nothing,
        nor does resuming one that is read. A paused split continues exactly where it stopped.

        Raises:
            ContractViolationError: this reader cannot (the default); alignment of splits needs it.
                It is not called where splits may drift
                (`balanced_source.reader.FetcherSet.may_drift`).
        """
        raise ContractViolationError(
            f"{type(self).__name__} cannot pause splits: alignment of watermarks needs that"
        )

    @abstractmethod
    def close(self) -> None:
        """Called once, last; also after `fetch` raised. Free what was opened."""


class RecordEmitter(ABC, Generic[E, T, StateT]):
    """Turns what a `SplitReader` fetched into records, and moves the split's position on."""

    @abstractmethod
    def emit_record(self, element: E, output: SourceOutput[T], split_state: StateT) -> None:
        """Put the records of one element into `output`, and note in `split_state` that it was.

        Called by the reader's main thread, for each element in its order. Both happen or neither:
        if this raises, the element is read again after the restart. One element may be no record,
        or many.
        """
