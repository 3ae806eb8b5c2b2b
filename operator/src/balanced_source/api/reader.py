"""The reader's side of FLIP-27: what runs where the data is read.

Threading: the host calls every method of a reader from one thread. A reader may use threads of its
own; the only thing that they may call is `SourceReaderContext.notify_available`.

Extension of the FLIP, needed because parallelism changes here without a restart:
`SourceReader.remove_splits`.
"""

import enum
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import Generic, TypeVar

from balanced_source.api.events import SourceEvent
from balanced_source.api.output import ReaderOutput
from balanced_source.api.splits import SourceSplit, SplitId
from balanced_source.errors import ContractViolationError

T = TypeVar("T")
SplitT = TypeVar("SplitT", bound=SourceSplit)


class InputStatus(enum.Enum):
    """What `SourceReader.poll_next` found.

    NOTHING_AVAILABLE: wait for `SourceReaderContext.notify_available`.
    """

    MORE_AVAILABLE = "MoreAvailable"
    NOTHING_AVAILABLE = "NothingAvailable"
    END_OF_INPUT = "EndOfInput"


class SourceReaderContext(ABC):
    """What the host offers to one reader."""

    @property
    @abstractmethod
    def subtask_id(self) -> int:
        """Which reader this is: 0 … parallelism − 1."""

    @property
    @abstractmethod
    def location(self) -> str:
        """Host name, for locality; empty when unknown."""

    @property
    def zone(self) -> str:
        """Availability zone, for locality; empty when unknown."""
        return ""

    @abstractmethod
    def current_parallelism(self) -> int:
        """Number of readers now. Ask each time: it changes without a restart."""

    @abstractmethod
    def send_split_request(self) -> None:
        """Ask the enumerator for work (pull-based sources).

        `SplitEnumerator.handle_split_request` is called once.
        """

    @abstractmethod
    def send_source_event_to_coordinator(self, event: SourceEvent) -> None:
        """Queue an event for the enumerator; delivered once per incarnation, in order."""

    @abstractmethod
    def notify_available(self) -> None:
        """Say that `poll_next` is worth calling.

        May be called by any thread, also when it is not so.
        """


class SourceReader(ABC, Generic[T, SplitT]):
    """Reads the splits that it is given (FLIP-27 ``SourceReader``)."""

    @abstractmethod
    def start(self) -> None:
        """Called once, before everything else.

        A pull-based reader without splits asks for its first one here.
        """

    @abstractmethod
    def poll_next(self, output: ReaderOutput[T]) -> InputStatus:
        """Emit available records in small portions, and say whether there is more. Must not block.

        Called between `start` and `close`, as long as it did not return END_OF_INPUT. That comes
        only after `notify_no_more_splits`, when all splits have finished and everything was
        emitted.

        Raises:
            Exception: reading failed; the host starts over from the last snapshot.
        """

    @abstractmethod
    def snapshot_state(self, checkpoint_id: int) -> Sequence[SplitT]:
        """All splits that are not finished, each at the position behind its last emitted record.

        Called between two polls, and when the output of a split is released: the split is still
        part of it then, at its end. Whatever was fetched but not emitted is not part of it. Must
        not block.
        """

    def snapshot_split(self, split_id: SplitId) -> SplitT | None:
        """One split of `snapshot_state`; None if it is not among them.

        Override it if that is cheaper than all.
        """
        return next((split for split in self.snapshot_state(1) if split.split_id == split_id), None)

    @abstractmethod
    def add_splits(self, splits: Sequence[SplitT]) -> None:
        """Take splits in addition, to be read from their positions on.

        None of them is one that the reader has.
        """

    @abstractmethod
    def remove_splits(self, split_ids: Collection[SplitId]) -> Sequence[SplitT]:
        """Let go of splits; returns them at the positions behind their last emitted records.

        Called between two polls, when readers became more or fewer. On return nothing of them is
        emitted any more, also nothing that was fetched before, so that the reader that gets them
        next repeats nothing and misses nothing. Finished and unknown ids are left out. A split may
        come back later by `add_splits`.
        """

    @abstractmethod
    def notify_no_more_splits(self) -> None:
        """Called when the enumerator will assign no further split. More than once is harmless."""

    def handle_source_event(self, event: SourceEvent) -> None:
        """Called for each event that the enumerator sent to this reader.

        Once per incarnation, in order.

        Raises:
            ContractViolationError: the reader does not know any events (the default).
        """
        raise ContractViolationError(f"{type(self).__name__} does not know event {event.name}")

    def pause_or_resume_splits(
        self, to_pause: Collection[SplitId], to_resume: Collection[SplitId]
    ) -> None:
        """Called when splits of an alignment group are too far ahead, or not any more.

        Unknown ids are ignored.

        What was fetched before may still be emitted. Without an override nothing is paused, and the
        group drifts.
        """

    def is_catching_up(self) -> bool:
        """Whether it is known that there is more to come soon, or not known yet whether there is.

        A host that stops reading when nothing has come for a while continues then, up to its other
        limits. Without an override, silence means that nothing is there.
        """
        return False

    def is_drained(self, split_id: SplitId) -> bool:
        """Whether the newest fetch of a split is over and has brought nothing.

        Without an override that is unknown: False.
        """
        return False

    def millis_behind(self) -> Mapping[SplitId, int]:
        """Return how far each split is behind its newest record, in milliseconds.

        0 if the source has nothing more of the split than was emitted. A task that is told so of
        all its splits ends as soon as a poll brings nothing. So leave out a split until a fetch
        has told how far it is behind, and while records of it are on their way.

        Called between two polls, and before the first one. For sources that know this, and not the
        number of records. Splits that are left out are unknown.
        """
        return {}

    def skipped_gaps(self) -> Mapping[SplitId, int]:
        """Return how often records of each split were gone, and were skipped.

        Since this reader was created. Only for gaps that the user accepts: others end the read.
        A task seals these numbers with what it has read, and the source's status shows their sum.
        Splits without a gap are left out. A gap may count twice if it is met again, never not at
        all.
        """
        return {}

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """Called when `snapshot_state(checkpoint_id)` is durable.

        What lies before may be acknowledged outside.

        Ids grow, and one call stands for all smaller ones: some may be left out.
        """

    @abstractmethod
    def close(self) -> None:
        """Called once, last; also after an exception.

        Frees everything; records not emitted are read again.
        """
