"""From two stream offsets to what each reader reads: a pure function, the same at every replay."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from balanced_source.api import IDENTITY, Position, SplitId
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.errors import ContractViolationError
from balanced_source.host.cutting import equalise
from balanced_source.host.ranges import SplitRange, ranges_of
from balanced_source.host.table_columns import column
from balanced_source.names import split_name


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderPlan:
    """What one reader reads in one micro-batch; ranges sorted by split id, none empty.

    With `StreamOffset.max_records_per_reader` a range may be a part of what the micro-batch reads
    of its split.
    """

    subtask_id: int
    ranges: tuple[SplitRange, ...]


def plan(start: StreamOffset, end: StreamOffset) -> tuple[ReaderPlan, ...]:
    """One plan per reader of `end`, or none at all if there is nothing to read.

    Starts count only in the micro-batch that adopts an epoch. The closing micro-batch that version
    0.1.0 wrote repeats the starts of the one before it; its records are delivered already.

    Raises:
        ContractViolationError: a split of `end` has no start in either offset.
    """
    shares: Mapping[int, Sequence[SplitRange]] = _shares(start, end)
    # A micro-batch without records needs no tasks; it adopts an epoch all the same.
    if not shares:
        return ()
    # A reader without ranges has a task too, so the number of tasks is that of readers.
    shares = {reader: shares.get(reader, ()) for reader in end.readers}
    # The limit is in the offset, because a replay must cut in the same places.
    if end.max_records_per_reader is not None:
        shares = {
            reader: sorted(share, key=lambda r: r.split_id)
            for reader, share in equalise(shares, max_records=end.max_records_per_reader).items()
        }
    return tuple(
        ReaderPlan(subtask_id=reader, ranges=tuple(share)) for reader, share in shares.items()
    )


def _shares(start: StreamOffset, end: StreamOffset) -> dict[int, tuple[SplitRange, ...]]:
    """Ranges of each reader with any, in the order of the ids.

    Works on columns: an object per split and step would cost more to make, and to collect, than
    all the rest.
    """
    split_ids = list(end.positions)
    begins, ends = column(_begins(start, end), split_ids), list(end.positions.values())
    attributes = column(end.attributes, split_ids)
    identities = [of_split.get(IDENTITY) if of_split else None for of_split in attributes]
    columns = (split_ids, begins, ends, identities, column(end.terms, split_ids))
    return {
        owner: ranges_of([list(map(each.__getitem__, places)) for each in columns])
        for owner, places in _read_by(split_ids, begins, ends, end.owners).items()
    }


def _read_by(
    split_ids: list[SplitId],
    begins: Sequence[Position],
    ends: Sequence[Position],
    owners: Mapping[SplitId, int],
) -> dict[int, list[int]]:
    """Places of the splits with records, by owner.

    Sorted by id, so that a replay has equal partitions whatever the order of the tables was.
    """
    found: dict[int | None, list[int]] = defaultdict(list)
    owned_by = column(owners, split_ids)
    for place, (begin, to, owner) in enumerate(zip(begins, ends, owned_by, strict=True)):
        # a log that was cut lets reading go back; the records after it come later
        if (begin or 0) < (to or 0):
            found[owner].append(place)
    # The owner is looked up once more, so that a split without one is an error.
    return {
        owners[split_ids[places[0]]]: sorted(places, key=split_ids.__getitem__)
        for places in found.values()
    }


def _begins(start: StreamOffset, end: StreamOffset) -> Mapping[SplitId, Position]:
    is_adopting = end.starts and start.epoch != end.epoch
    begins = {**start.positions, **end.starts} if is_adopting else start.positions
    if unknown := end.positions.keys() - begins.keys():
        raise ContractViolationError(
            f"split {split_name(min(unknown))} of epoch {end.epoch} has no start: Spark's offset"
            " log is damaged. Restore the checkpoint"
        )
    return begins


class PlanOnce:
    """Plans each micro-batch once, although its plan is needed for figures and for tasks.

    Offsets are compared by identity, which costs nothing; other objects are planned again. Used by
    one thread.
    """

    def __init__(self) -> None:
        self._newest: tuple[StreamOffset, StreamOffset, tuple[ReaderPlan, ...]] | None = None

    def __call__(self, start: StreamOffset, end: StreamOffset) -> tuple[ReaderPlan, ...]:
        """See `plan`."""
        newest = self._newest
        if newest is None or newest[0] is not start or newest[1] is not end:
            newest = self._newest = start, end, plan(start, end)
        return newest[2]
