"""Event-time alignment by admission: no split runs ahead of the slowest active one by more than a drift.

Spark has one watermark per query: the newest event time of *all* records less a delay. Reading a backlog whose
partitions are skewed in time, the fast ones make the records of the slow ones late, and late records are dropped. Flink
pauses splits that run ahead (FLIP-182, FLIP-217); a micro-batch engine need not pause: what is not admitted is not
read. All splits are read up to one *aligned time*, which grows with the slowest of them, at the grain of micro-batches.

Records' own timestamps are compared, as the broker indexes them; records that are out of order within a split by less
than the watermark's delay are as safe as without skew.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from balanced_source.api import SplitId


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordTime:
    """A record: where it is, and when it happened.

    Attributes:
        offset: in its split.
        time: milliseconds since the epoch.
    """

    offset: int
    time: int


Following: TypeAlias = Mapping[SplitId, RecordTime | None]
"""Split → its first record that is newer than the aligned time; None: there is none."""


def watermarks(
    aligned: int, positions: Mapping[SplitId, int], ends: Mapping[SplitId, int], following: Following
) -> dict[SplitId, int | None]:
    """How far in time each split is read: milliseconds up to which nothing more comes of it.

    None: nothing is known, because all of the split is read, or it stands beyond what `following` says.
    A split that is not read up to the aligned time counts as standing there; it may be further behind.
    """
    result: dict[SplitId, int | None] = {}
    for split_id, position in positions.items():
        record = following.get(split_id)
        bound = ends.get(split_id, position) if record is None else record.offset
        if position < bound:
            result[split_id] = aligned
        else:
            result[split_id] = record.time if record is not None and position == record.offset else None
    return result


def advance(
    aligned: int,
    positions: Mapping[SplitId, int],
    ends: Mapping[SplitId, int],
    following: Following,
    *,
    last_seen: Mapping[SplitId, int],
    idle: Collection[SplitId],
    max_drift: int,
) -> int:
    """The aligned time of the next micro-batch; never less than before.

    Args:
        aligned: time of the one before.
        positions: how far splits are read.
        ends: how far they could be.
        following: see there, of `aligned`.
        last_seen: newest time known of splits that are read to their end; one without any holds all others, until
            something arrives there or it is idle.
        idle: splits that hold nobody back: nothing arrived there for too long.
        max_drift: milliseconds.
    """
    slowest: int | None = None
    for split_id, mark in watermarks(aligned, positions, ends, following).items():
        if mark == aligned:
            return aligned  # not even what was admitted before is read: nobody goes on
        if mark is None and (split_id in idle or positions[split_id] < ends.get(split_id, 0)):
            continue
        time = mark if mark is not None else last_seen.get(split_id)
        if time is None:
            return aligned
        slowest = time if slowest is None else min(slowest, time)
    return aligned if slowest is None else max(aligned, slowest + max_drift)


def capped(ends: Mapping[SplitId, int], following: Following) -> dict[SplitId, int]:
    """How far splits may be read: up to the first record that is newer than the aligned time.

    A split of which nothing is known (its cluster did not answer) is not read.
    """
    result = {}
    for split_id, end in ends.items():
        if split_id in following:
            record = following[split_id]
            result[split_id] = end if record is None else min(end, record.offset)
    return result
