"""The Spark half of a source whose ends are not known when a micro-batch is planned.

Tasks get readers.

Tasks run the connector's `SourceReader` (FLIP-27) on their splits until a limit is met or nothing
more comes. Then they seal in the journal where it stopped, and only then emit. Planning folds what
they sealed into the next starts.

Such a source is delivered exactly once if its splits can be read again: the same positions give the
same records.
"""

from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from balanced_source.api import (
    Json,
    Position,
    SourceReader,
    SourceReaderContext,
    SourceSplit,
    SplitId,
)
from balanced_source.host.ends import Mark, SplitEnd
from balanced_source_spark.contract.half import AnyHalf, Query
from balanced_source_spark.contract.hooks import PlannerContext, PlannerHooks

if TYPE_CHECKING:
    import pyarrow as pa

ReadT = TypeVar("ReadT")
T = TypeVar("T")
SplitT = TypeVar("SplitT", bound=SourceSplit)


class ReaderHooks(PlannerHooks):
    """What planning asks of such a source. Each hook has a default.

    Override `ends` if the source can tell how far its splits can be read. A micro-batch begins as
    soon as there is something to read then; AvailableNow and batch queries stop exactly at these
    ends; and the lag is known.
    """

    @property
    def knows_ends(self) -> bool:
        """Whether `ends` was overridden."""
        return type(self).ends is not ReaderHooks.ends

    @property
    def tells_event_times(self) -> bool:
        """Whether splits can be aligned in event time.

        Override with True if the reader gives each record its time, in milliseconds since the
        epoch, by the output of the record's split. No server is asked: a split is read until a
        record is beyond the aligned time. What one poll brings of a split is kept back as a whole,
        so alignment is exact if a poll brings one record, as with `SourceReaderBase`.
        """
        return False

    @property
    def is_continued(self) -> bool:
        """Whether other splits continue one that was read to its end, like children of a shard.

        How far the source is behind in time is unknown then, until the split that ended has left.
        """
        return False

    def ends(
        self, scope: str, split_ids: Collection[SplitId], marks: Mapping[SplitId, Mark]
    ) -> Mapping[SplitId, SplitEnd]:
        return {}


class ReadersHalf(AnyHalf[ReadT], Generic[ReadT, T, SplitT]):
    """See the module. Stateless: tasks unpickle it."""

    @abstractmethod
    def split(
        self, split_id: SplitId, position: Position, attributes: Mapping[str, Json]
    ) -> SplitT:
        """Return the split with this id, to be read from `position` on.

        Args:
            split_id: as the enumerator has made it.
            position: where to begin.
            attributes: of the split. When a task reads a sealed range again, `STOP` is where the
                range ends.
        """

    @abstractmethod
    def reader(
        self, query: Query[ReadT], settings: Mapping[str, Any], context: SourceReaderContext
    ) -> SourceReader[T, SplitT]:
        """Return the reader of a task. It is used for one micro-batch, then closed.

        Its positions are exact: the position behind a record is where the next one begins, also
        when it is read again.

        Args:
            query: see `Query`.
            settings: what `Source.reader_settings` returned, from the assignment.
            context: of the reader. A task cannot request splits, nor send events.
        """

    @property
    def is_replayable(self) -> bool:
        """Whether a split gives the same records when read again, as exactly-once needs.

        A plain queue, which forgets what it has handed out, returns False. Then delivery is at
        least once if the queue hands out again what no one has confirmed (confirm in
        `PlannerHooks.note_delivered`). The user is told so by the condition `AtLeastOnce`, and
        sealed records that do not come again are skipped with a warning.
        """
        return True

    def may_skip(self, query: Query[ReadT], settings: Mapping[str, Any]) -> bool:
        """Return whether the user accepts that records which are gone are skipped.

        A task asks when a range that was sealed by a former attempt has fewer records than it had.
        If not, it fails.

        Args:
            query: see `Query`.
            settings: what `Source.reader_settings` returned, from the assignment.
        """
        return False

    @abstractmethod
    def rows(self, records: Sequence[T]) -> "pa.RecordBatch":
        """Return the rows of these records, in the columns of `schema`.

        One row per record, in the same order.
        """

    def hooks(self, context: PlannerContext[ReadT]) -> ReaderHooks:
        return ReaderHooks()
