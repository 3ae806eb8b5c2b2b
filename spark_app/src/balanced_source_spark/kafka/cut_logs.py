"""Tells a log that was cut after a micro-batch was planned from one that only keeps a task waiting.

Where other records have taken the planned offsets, their leader epoch tells (`LogRewrittenError`).
A log that has not grown that far again has no record to tell it by: the task waits for offsets that
may never come, or is told that they are out of range. What it reads is in Spark's offset log, so a
restart would wait for the same. Hence it asks where the log ends before it gives up.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from balanced_source.api import SplitId
from balanced_source.connectors.kafka import KafkaSplitId
from balanced_source.errors import DiscoveryError
from balanced_source.host import SplitRange
from balanced_source_spark.kafka.settings import (
    LogRewrittenError,
    OffsetsLostError,
    RangeReaderSettings,
    ReadStalledError,
)
from balanced_source_spark.kafka.skipping import Read

if TYPE_CHECKING:
    from balanced_source.host.ends import Mark, SplitEnd

Ends = Callable[[Collection[SplitId], Mapping[SplitId, "Mark"]], Mapping[SplitId, "SplitEnd"]]
"""Where partitions end, with a check whether their logs were cut. Raises DiscoveryError."""


def read_unless_cut(
    ranges: Sequence[SplitRange], settings: RangeReaderSettings, *, read: Read, ends: Ends
) -> Iterator[pa.RecordBatch]:
    """All records of the ranges.

    Raises:
        LogRewrittenError: a log was cut after its range was planned.
        OffsetsLostError: offsets are gone for another reason.
        ReadStalledError: nothing arrives, and all logs are whole as far as is known.
    """
    try:
        yield from read(ranges, settings)
    except LogRewrittenError:
        raise
    except (OffsetsLostError, ReadStalledError) as error:
        if settings.interrupt.is_set or not (cuts := _cuts(ranges, ends)):
            raise
        raise _was_cut(cuts, settings) from error


def _cuts(ranges: Sequence[SplitRange], ends: Ends) -> dict[tuple[str, int], int]:
    """Return where the logs of ranges were cut, of those that were and that answer."""
    # Only here, where a read has failed: a task that begins loads what it needs to read.
    from balanced_source.host.ends import Mark

    marks = {
        piece.split_id: Mark(position=int(piece.end or 0), term=piece.term, identity=piece.identity)
        for piece in ranges
    }
    try:
        found = ends(list(marks), marks)
    except DiscoveryError as error:
        found = error.answers
    return {
        (place.topic, place.partition): answer.cut
        for split_id, answer in sorted(found.items())
        if answer.cut is not None
        and answer.cut < marks[split_id].position
        and (place := KafkaSplitId.of(split_id))
    }


def _was_cut(
    cuts: Mapping[tuple[str, int], int], settings: RangeReaderSettings
) -> LogRewrittenError:
    key, offset = next(iter(cuts.items()))
    return LogRewrittenError(
        f"{settings.where}, topic {key[0]}, partition {key[1]}: the log was cut at offset"
        f" {offset} after this micro-batch was planned, by an unclean leader election or a restored"
        " disk",
        cuts=cuts,
    )
