"""Micro-batches whose ends are not known when they are planned.

What tasks read, and where it has ended. Pure.

The stream offset of micro-batch n has the *starts* of its splits. Its tasks seal where they stop.
Planning n + 1 folds what they sealed into the next starts. So `shares` depends on one offset alone,
as a replay needs it.
"""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Final

from balanced_source.api import READ_UP_TO, STOP, Json, Position, SourceSplit, SplitId
from balanced_source.documents.journal import (
    FetchLimits,
    JournalPoint,
    JournalRecord,
    RecordKey,
    Targets,
)
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.errors import ContractViolationError
from balanced_source.host.journal import folded
from balanced_source.names import split_name

STEP: Final = 600_000
"""Milliseconds after which it is noted again that a split has nothing more: each note is stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """What one reader has to read in one micro-batch.

    Attributes:
        key: of the record that says where it stopped.
        parallelism: number of readers of the source.
        limits: see `FetchLimits`.
        starts: split → where to begin; the splits of this reader that are not finished, nor at
            their target.
        targets: see `Targets`; of these splits.
        attributes: what else is known of these splits.
        beyond: see `Pause`; None: splits are not aligned.
    """

    key: RecordKey
    parallelism: int
    limits: FetchLimits
    starts: Mapping[SplitId, Position]
    targets: Targets | None = None
    attributes: Mapping[SplitId, Mapping[str, Json]] = field(default_factory=dict)
    beyond: int | None = None

    def check(self, record: JournalRecord) -> None:
        """Check that a sealed record is of this share.

        Raises:
            ContractViolationError: it begins elsewhere, or is of other splits.
        """
        for split_id in {*record.ends, *record.finished}:
            own = split_id in self.starts
            if own and record.starts.get(split_id) == self.starts[split_id]:
                continue
            # Emitting the sealed range of another start would repeat or skip records.
            raise ContractViolationError(
                f"the journal says that micro-batch {self.key.number} of reader {self.key.reader}"
                f" begins split {split_name(split_id)} at {record.starts.get(split_id)!r}, but the"
                f" query at {self.starts.get(split_id)!r}: two queries use one Spark checkpoint"
            )

    def quiet(self, splits: Iterable[SourceSplit]) -> dict[SplitId, int]:
        """Return when splits that stayed where they are had nothing more, where that is news."""
        found = {split.split_id: split.attributes().get(READ_UP_TO) for split in splits}
        return {
            s: time
            for s, time in sorted(found.items())
            if isinstance(time, int)
            and time - self.attributes.get(s, {}).get(READ_UP_TO, 0) >= STEP
        }


def stops_of(record: JournalRecord) -> dict[SplitId, Position]:
    """Return where splits stop when a sealed range is read again.

    One that finished ends by itself.
    """
    return {s: end for s, end in record.ends.items() if s not in record.finished}


def shares(end: StreamOffset) -> tuple[Share, ...]:
    """Return one share per reader, or none at all if there is nothing to read."""
    point = end.journal
    # A closing micro-batch repeats the point of the one before it, whose records are delivered.
    if point is None or end.closings:
        return ()
    owned = _unread(end, point)
    if not owned:
        return ()
    # A reader without splits has a share too: each micro-batch has a task per reader.
    return tuple(_share(end, point, r, sorted(owned.get(r, ()))) for r in end.readers)


def readers_of(end: StreamOffset) -> list[int]:
    """Return the readers that seal a record in a micro-batch: those with splits to read."""
    if end.journal is None or end.closings:
        return []
    return sorted(_unread(end, end.journal))


def delivered(end: StreamOffset, records: Iterable[JournalRecord]) -> StreamOffset:
    """Return the offset behind everything that a micro-batch delivered.

    Raises:
        ContractViolationError: see `folded`.
    """
    if end.journal is None:
        return end
    found = list(records)
    done = frozenset[SplitId]().union(*(record.finished for record in found))
    point = replace(
        end.journal,
        finished=end.journal.finished | done,
        read_up_to=_read_up_to(end.journal, found, done),
    )
    return replace(end, positions=folded(end.positions, found), journal=point)


def _read_up_to(
    point: JournalPoint, records: Iterable[JournalRecord], done: AbstractSet[SplitId]
) -> dict[SplitId, int]:
    """Return until when each split had nothing behind its position; not of one that has moved."""
    found, moved = dict(point.read_up_to), set(done)
    for record in records:
        found.update(record.read_up_to)
        moved.update(record.ends)
    return {s: time for s, time in found.items() if s not in moved}


def caught_up(end: StreamOffset, records: Iterable[JournalRecord]) -> frozenset[SplitId]:
    """Return the splits of which everything was read.

    Their readers looked for more, and met no limit.
    """
    # A reader that met a limit left records behind, and may not have looked at every split.
    looked = {r.key.reader for r in records if not r.has_more}
    paused = _paused(end.journal)
    return frozenset(
        s
        for s, owner in end.owners.items()
        if owner in looked and s in end.positions and s not in paused
    )


def millis_behind(
    end: StreamOffset, records: Iterable[JournalRecord], *, is_continued: bool = False
) -> dict[SplitId, int | None]:
    """Return how far the splits of a finished micro-batch are behind, in milliseconds.

    Args:
        end: of the micro-batch.
        records: that its readers have sealed.
        is_continued: whether other splits continue one that ended. As long as it is held, they were
            not begun.

    Returns:
        Split → milliseconds; None: unknown. Empty if the source does not know this at all.
    """
    found = list(records)
    behind = {s: millis for record in found for s, millis in record.behind.items()}
    # Without any number the source does not know this at all, which is not the same as unknown.
    if not behind or end.journal is None:
        return {}
    done = end.journal.finished.union(*(record.finished for record in found))
    return {
        s: None if s in done else behind.get(s)
        for s in end.positions
        if is_continued or s not in done
    }


def has_progress(records: Iterable[JournalRecord]) -> bool:
    """Return whether a micro-batch delivered anything, so that the next one is likely to."""
    return any(record.has_more or record.ends for record in records)


def next_end(base: StreamOffset, point: JournalPoint) -> StreamOffset:
    """Return the end of the micro-batch that begins at `base`."""
    former = base.journal
    finished = former.finished if former is not None else frozenset()
    return replace(
        base,
        journal=replace(
            point,
            finished=finished | _stopped(base),
            read_up_to=former.read_up_to if former is not None else {},
        ),
        # Ranges cannot be cut between readers while no one knows where they end.
        max_records_per_reader=None,
    )


def _stopped(base: StreamOffset) -> frozenset[SplitId]:
    stops = ((s, a[STOP]) for s, a in base.attributes.items() if STOP in a)
    return frozenset(s for s, stop in stops if (base.positions.get(s) or 0) >= stop)


def _unread(end: StreamOffset, point: JournalPoint) -> dict[int, list[SplitId]]:
    """Reader → splits that it reads on."""
    owned: dict[int, list[SplitId]] = {}
    left_out = point.left_out | _paused(point)
    for split_id, position in end.positions.items():
        if split_id not in left_out and not _is_there(point.targets, split_id, position):
            owned.setdefault(end.owners[split_id], []).append(split_id)
    return owned


def _paused(point: JournalPoint | None) -> frozenset[SplitId]:
    return point.pause.splits if point is not None and point.pause is not None else frozenset()


def _is_there(targets: Targets | None, split_id: SplitId, position: Position) -> bool:
    """Whether a split needs no reading in a query that ends by itself."""
    return targets is not None and (position or 0) >= (targets.get(split_id) or 0)


def _attributes(end: StreamOffset, point: JournalPoint, split_id: SplitId) -> Mapping[str, Json]:
    known = end.attributes.get(split_id, {})
    time = point.read_up_to.get(split_id)
    return known if time is None else {**known, READ_UP_TO: time}


def _share(end: StreamOffset, point: JournalPoint, reader: int, splits: Sequence[SplitId]) -> Share:
    targets = point.targets
    return Share(
        key=RecordKey(point.journal, point.number, reader),
        parallelism=end.parallelism,
        limits=point.limits,
        starts={s: end.positions[s] for s in splits},
        targets=None if targets is None else {s: targets[s] for s in splits},
        attributes={s: known for s in splits if (known := _attributes(end, point, s))},
        beyond=point.pause.beyond if point.pause is not None else None,
    )
