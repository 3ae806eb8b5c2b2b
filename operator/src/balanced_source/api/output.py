"""Where readers put records and watermarks (FLIP-27 ``ReaderOutput``, ``WatermarkOutput``).

A watermark `w` says: no record with a timestamp at or below `w` follows. Timestamps and watermarks
are milliseconds since the epoch.
"""

from abc import ABC, abstractmethod
from typing import Final, Generic, TypeVar

from balanced_source.api.splits import SplitId

T_contra = TypeVar("T_contra", contravariant=True)

MIN_WATERMARK: Final = -(2**63)
"""Nothing is known yet."""

MAX_WATERMARK: Final = 2**63 - 1
"""Nothing follows at all: the watermark of what has ended."""


class WatermarkOutput(ABC):
    """Progress of event time, of one split or of a whole reader."""

    @abstractmethod
    def emit_watermark(self, watermark: int) -> None:
        """Say that no record at or below `watermark` follows.

        Called at any time between `create_output_for_split` and its release. One that is not larger
        than the last is ignored: watermarks never go back. Ends idleness.
        """

    @abstractmethod
    def mark_idle(self) -> None:
        """Say that nothing comes for now: no other output waits for this output's watermark.

        More than once is harmless.

        The next `emit_watermark`, record or `mark_active` ends it.
        """

    @abstractmethod
    def mark_active(self) -> None:
        """Say that records may come again.

        The output's last watermark counts again, though it holds no one back.
        """


class SourceOutput(WatermarkOutput, Generic[T_contra]):
    """Records of one split, or of a reader that does not tell splits apart."""

    @abstractmethod
    def collect(self, record: T_contra, timestamp: int | None = None) -> None:
        """Hand over one record, which is never None. Ends idleness.

        Called by `RecordEmitter.emit_record` or by a `SourceReader` within `poll_next`, never
        outside of it. On return the record counts as delivered: the split's position may go past
        it. The reader may change the record then and collect it again, because the output keeps a
        shallow copy of a record that is not immutable. What a record refers to, such as a list in
        a tuple or a view of a buffer, must stay as it is until `ReaderOutput.flush`.

        Args:
            record: the record.
            timestamp: of the event, in milliseconds since the epoch; None if it has none.
        """


class ReaderOutput(SourceOutput[T_contra]):
    """The output of a reader.

    One output per split, so that splits at different times do not confuse the watermark.

    Its own watermark methods speak for the reader as a whole, as if they were one more split; a
    reader uses either them or the outputs of splits.
    """

    @abstractmethod
    def create_output_for_split(self, split_id: SplitId) -> SourceOutput[T_contra]:
        """The output of a split; the same one for the same split until it is released.

        Called when the reader has got the split, before anything of it is read. The reader's
        watermark waits for the new output from then on: for its first watermark, or until it is
        idle.
        """

    @abstractmethod
    def release_output_for_split(self, split_id: SplitId) -> None:
        """End a split's output: it finished, or was taken away.

        No one waits for it any more. Unknown ids are ignored.

        Called after the split's last record, while `SourceReader.snapshot_state` still has the
        split: its position is the end of the split. The output must not be used afterwards.
        """

    def flush(self) -> None:
        """Make rows of the records so far; what they refer to may be changed afterwards.

        A reader calls it before it uses buffers again that collected records refer to.
        `balanced_source.reader.SourceReaderBase` calls it before `RecordsWithSplitIds.recycle`,
        if that is overridden. Without an override it does nothing: the output keeps no records.
        """
