"""A reader of tapes that derives `SourceReader` itself, and uses all that its contract allows.

It emits several records in a poll, returns END_OF_INPUT together with its last record, and returns
lists. It does not accept a poll after that.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from balanced_source.api import (
    InputStatus,
    ReaderOutput,
    SourceReader,
    SourceReaderContext,
    SplitId,
)
from balanced_source_spark.contract.half import Query
from support.tapes import Record, Shelf, TapeHalf, TapeSplit


class BurstReader(SourceReader[Record, TapeSplit]):
    """See the module.

    Args:
        shelf: of the tapes.
        size: records of one poll at most.
        says_end: whether a split that ends is still in the snapshot when its output is released.
    """

    def __init__(self, shelf: Shelf, size: int, *, says_end: bool = True) -> None:
        self._shelf = shelf
        self._size = size
        self._says_end = says_end
        self._splits: dict[SplitId, TapeSplit] = {}
        self._gets_more = True
        self._has_ended = False

    def start(self) -> None:
        """Nothing to do."""

    def poll_next(self, output: ReaderOutput[Record]) -> InputStatus:
        if self._has_ended:
            raise RuntimeError("polled again after END_OF_INPUT")
        left = self._size
        for split_id in list(self._splits):
            left -= self._emit(split_id, output, left)
            self._finish(split_id, output)
        self._has_ended = not (self._splits or self._gets_more)
        if self._has_ended:
            return InputStatus.END_OF_INPUT
        return InputStatus.NOTHING_AVAILABLE if left else InputStatus.MORE_AVAILABLE

    def _emit(self, split_id: SplitId, output: ReaderOutput[Record], limit: int) -> int:
        split, to = self._splits[split_id], output.create_output_for_split(split_id)
        behind = min(split.next + limit, self._shelf.lengths[split.name], self._end(split))
        for number in range(split.next, behind):
            to.collect((split.name, number))
        self._splits[split_id] = split.at(max(split.next, behind))
        return max(0, behind - split.next)

    def _end(self, split: TapeSplit) -> int:
        known = [split.stop, self._shelf.ends.get(split.name)]
        return min((end for end in known if end is not None), default=2**62)

    def _finish(self, split_id: SplitId, output: ReaderOutput[Record]) -> None:
        if self._splits[split_id].next < self._end(self._splits[split_id]):
            return
        if self._says_end:
            output.release_output_for_split(split_id)
            del self._splits[split_id]
        else:
            del self._splits[split_id]
            output.release_output_for_split(split_id)

    def snapshot_state(self, checkpoint_id: int) -> list[TapeSplit]:
        return list(self._splits.values())

    def add_splits(self, splits: Sequence[TapeSplit]) -> None:
        self._splits |= {split.split_id: split for split in splits}

    def remove_splits(self, split_ids: Collection[SplitId]) -> list[TapeSplit]:
        return [self._splits.pop(s) for s in split_ids if s in self._splits]

    def notify_no_more_splits(self) -> None:
        self._gets_more = False

    def close(self) -> None:
        """Nothing to do."""


@dataclass
class BurstHalf(TapeHalf):
    """Tapes that a `BurstReader` reads."""

    size: int = 4
    says_end: bool = True

    def reader(self, query: Query[None], settings: Any, context: SourceReaderContext) -> Any:
        self.shelf.reads += 1
        return BurstReader(self.shelf, self.size, says_end=self.says_end)
