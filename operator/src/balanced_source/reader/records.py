"""Records by split, in memory: what most split readers return."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Generic, TypeVar

from balanced_source.api import RecordsWithSplitIds, SplitId
from balanced_source.errors import ContractViolationError

E = TypeVar("E")


class RecordsBySplits(RecordsWithSplitIds[E], Generic[E]):
    """See `RecordsWithSplitIds`; built from what one fetch brought.

    Args:
        records: split → its records, in their order.
        finished: splits without any further record.
    """

    def __init__(
        self,
        records: Mapping[SplitId, Sequence[E]] | None = None,
        finished: Collection[SplitId] = (),
    ) -> None:
        self._splits = iter((records or {}).items())
        self._records: Iterator[E] | None = None
        self._finished = frozenset(finished)

    def next_split(self) -> SplitId | None:
        split_id, records = next(self._splits, (None, ()))
        self._records = iter(records) if split_id is not None else None
        return split_id

    def next_record_from_split(self) -> E | None:
        if self._records is None:
            raise ContractViolationError(
                "next_record_from_split was called without a split: call next_split first"
            )
        return next(self._records, None)

    def finished_splits(self) -> frozenset[SplitId]:
        return self._finished
