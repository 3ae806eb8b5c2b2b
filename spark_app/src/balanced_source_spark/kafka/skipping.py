"""``onDataLoss: Continue`` in a task: ranges without what does not exist any more.

What a micro-batch reads is in the offset log and cannot change, so a range whose beginning was
deleted in between would fail at every replay. Hence tasks look at what there is before they read,
and once more whenever retention was faster than that look.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from balanced_source.api import SecretReader, SplitId
from balanced_source.connectors.kafka import Gap, KafkaSplitId, listed
from balanced_source.host import SplitRange
from balanced_source_spark.kafka.settings import (
    LogRewrittenError,
    OffsetsLostError,
    RangeReaderSettings,
)
from balanced_source_spark.task_log import tell

if TYPE_CHECKING:
    from balanced_source_adapters.kafka.admin import KafkaAdmin

_PROGRESS: Final = ("topic", "partition", "offset")
"""Columns that say how far ranges are read."""

Begins = Callable[[Collection[SplitId]], Mapping[SplitId, int]]
"""First offset of each partition that exists. Raises DiscoveryError."""

Skip = Callable[[Sequence[SplitRange]], None]
"""Is told of ranges that are gone."""

Read = Callable[[Sequence[SplitRange], RangeReaderSettings], Iterator[pa.RecordBatch]]


def existing(ranges: Sequence[SplitRange], begins: Mapping[SplitId, int]) -> list[SplitRange]:
    """The ranges without what lies before the first offset or in partitions that are gone."""
    kept = [
        replace(r, start=max(int(r.start or 0), begins[r.split_id]))
        for r in ranges
        if r.split_id in begins
    ]
    return [r for r in kept if _has_records(r)]


def _has_records(piece: SplitRange) -> bool:
    return int(piece.start or 0) < int(piece.end or 0)


def read_what_is_left(
    ranges: Sequence[SplitRange],
    settings: RangeReaderSettings,
    *,
    begins: Begins,
    read: Read,
    skip: Skip,
) -> Iterator[pa.RecordBatch]:
    """All records of the ranges that still exist, each once. Says which do not.

    Args:
        ranges: of the micro-batch.
        settings: how they are read.
        begins: of the cluster.
        read: reads ranges.
        skip: is told of what is gone.

    Raises:
        OffsetsLostError: offsets are gone, and not by retention.
        DiscoveryError: the cluster does not say what there is.
    """
    columns = (*settings.columns, *(name for name in _PROGRESS if name not in settings.columns))
    left, tried = _left(ranges, begins, skip), list[SplitRange]()
    while left:
        progress = _RangeProgress(left)
        try:
            for batch in read(left, replace(settings, columns=columns)):
                progress.note(batch)
                yield batch.select(list(settings.columns))
        except LogRewrittenError as error:
            left, tried = _before_rewritten(progress.unread(), error), []
        except OffsetsLostError:
            unread = progress.unread()
            left = _left(unread, begins, skip)
            # Once more without anything new to skip: a consumer that was kept may still hold the
            # error of its former position, such as that of a log that was cut. The next attempt has
            # a new consumer.
            if left == tried:
                raise
            tried = left
        else:
            return


def _left(ranges: Sequence[SplitRange], begins: Begins, skip: Skip) -> list[SplitRange]:
    first = begins([piece.split_id for piece in ranges])
    gone = [(piece, gap) for piece in ranges if (gap := _skipped(piece, first)).size]
    if gone:
        tell(
            "warning",
            "records were deleted before they were read, and are skipped:"
            f" {listed([gap for _, gap in gone])}",
        )
        skip([replace(piece, end=gap.end) for piece, gap in gone])
    return existing(ranges, first)


def _before_rewritten(unread: Sequence[SplitRange], error: LogRewrittenError) -> list[SplitRange]:
    """Return the ranges up to where their records are others now.

    The next micro-batch goes back to that place.
    """
    kept = {KafkaSplitId.of(piece.split_id)[1:]: piece for piece in unread}
    for key, offset in error.cuts.items():
        if (piece := kept.get(key)) is not None:
            tell(
                "warning",
                f"{error}. Topic {key[0]}, partition {key[1]}: up to offset"
                f" {int(piece.end or 0) - 1} nothing is delivered in this micro-batch",
            )
            kept[key] = replace(piece, end=min(offset, int(piece.end or 0)))
    return [piece for piece in kept.values() if _has_records(piece)]


def _skipped(piece: SplitRange, begins: Mapping[SplitId, int]) -> Gap:
    """What is gone of a range: all of it with its partition."""
    _, topic, partition = KafkaSplitId.of(piece.split_id)
    end = int(piece.end or 0)
    return Gap(
        topic=topic,
        partition=partition,
        start=int(piece.start or 0),
        end=min(begins.get(piece.split_id, end), end),
    )


class _RangeProgress:
    """How far ranges are read."""

    def __init__(self, ranges: Sequence[SplitRange]) -> None:
        self._ranges = {KafkaSplitId.of(piece.split_id)[1:]: piece for piece in ranges}

    def note(self, batch: pa.RecordBatch) -> None:
        """These rows are delivered."""
        table = pa.Table.from_batches([batch.select(list(_PROGRESS))])
        for row in (
            table.group_by(["topic", "partition"]).aggregate([("offset", "max")]).to_pylist()
        ):
            key = (row["topic"], row["partition"])
            self._ranges[key] = replace(self._ranges[key], start=row["offset_max"] + 1)

    def unread(self) -> list[SplitRange]:
        """What is not delivered yet."""
        return [piece for piece in self._ranges.values() if _has_records(piece)]


@cache
def task_admin(secrets: SecretReader, client_id: str) -> "KafkaAdmin":
    """For the tasks of a worker process; workers are reused.

    Few sources need one, so it is loaded here.
    """
    from balanced_source_adapters.kafka.admin import KafkaAdmin

    return KafkaAdmin(secrets, client_id=client_id)
