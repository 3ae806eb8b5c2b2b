"""Event-time alignment by admission.

No split runs ahead of the slowest active one by more than a drift.

Spark has one watermark per query: the newest event time of *all* records less a delay. Reading a
backlog whose partitions are skewed in time, the fast ones make the records of the slow ones late,
and late records are dropped. Flink pauses splits that run ahead (FLIP-182, FLIP-217); a micro-batch
engine need not pause: what is not admitted is not read. All splits are read up to one *aligned
time*, which grows with the slowest of them, at the grain of micro-batches.

Records' own timestamps are compared, as the server indexes them; records that are out of order
within a split by less than the watermark's delay are as safe as without skew.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from balanced_source.api import MAX_WATERMARK, SplitId


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
    aligned: int,
    positions: Mapping[SplitId, int],
    ends: Mapping[SplitId, int],
    following: Following,
) -> dict[SplitId, int | None]:
    """How far in time each split is read: milliseconds up to which nothing more comes of it.

    None: nothing is known, because all of the split is read, or it stands beyond what `following`
        says.
    A split that is not read up to the aligned time counts as standing there; it may be further
    behind.
    """
    result: dict[SplitId, int | None] = {}
    for split_id, position in positions.items():
        record = following.get(split_id)
        bound = ends.get(split_id, position) if record is None else record.offset
        # It may be further behind: what was admitted before is not read to its end.
        if position < bound:
            result[split_id] = aligned
        else:
            result[split_id] = (
                record.time if record is not None and position == record.offset else None
            )
    return result


def slowest(
    aligned: int,
    positions: Mapping[SplitId, int],
    ends: Mapping[SplitId, int],
    following: Following,
    *,
    last_seen: Mapping[SplitId, int],
    idle: Collection[SplitId],
) -> int | None:
    """How far the slowest active split is; `MAX_WATERMARK`: none is active.

    None: that cannot be told, and no one continues. Not even what was admitted before is read, or a
        split is read to its
    end of which no time is known.

    Args:
        aligned: time of the micro-batch before.
        positions: how far splits are read.
        ends: how far they could be.
        following: see there, of `aligned`.
        last_seen: newest time known of splits that are read to their end; one without any holds all
            others, until something arrives there or it is idle.
        idle: splits that hold no one back: for too long, nothing could be read there.
    """
    least = MAX_WATERMARK
    for split_id, mark in watermarks(aligned, positions, ends, following).items():
        if mark == aligned:
            # Admitted, and out of reach: its leader is silent, or other records have its offsets.
            if split_id in idle:
                continue
            return None
        # An idle split holds no one back. One beyond what is admitted is ahead, not behind.
        if mark is None and (split_id in idle or positions[split_id] < ends.get(split_id, 0)):
            continue
        time = mark if mark is not None else last_seen.get(split_id)
        # An empty split without any time may get old records yet, so it holds the others.
        if time is None:
            return None
        least = min(least, time)
    return least


def advance(
    aligned: int, slowest: int | None, *, others: int = MAX_WATERMARK, max_drift: int
) -> int:
    """The aligned time of the next micro-batch; never less than before.

    Args:
        aligned: time of the one before.
        slowest: see there.
        others: how far the other sources of the alignment group are; `MIN_WATERMARK`: not known
            yet.
        max_drift: milliseconds.
    """
    if slowest is None or slowest == MAX_WATERMARK:
        return aligned
    # Never back: what was admitted once may have been read.
    return max(aligned, min(slowest, others) + max_drift)


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


def unaligned(kind: str) -> str:
    """Return why splits of a kind of source cannot be aligned, for people."""
    return (
        f"connector {kind!r} does not tell event times, so its splits cannot be aligned: leave it"
        " out (in a spec: alignment)"
    )
