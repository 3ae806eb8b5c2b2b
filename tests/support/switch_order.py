"""Checks the file sink of a history that is followed by live records.

Each record is there once; no key has a live record before all of its history; and live records of a
partition are there in the order of their offsets.

Shares nothing with the product: it reads Spark's log of committed files, and the files.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from support.story.sink import files_by_batch

_COLUMNS = ["key", "partition", "offset"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Switched:
    """What a sink holds, against what should be there.

    Attributes:
        delivered: rows.
        lost: records that are in no row.
        duplicated: rows beyond the first of their record, and rows of records that were never
            produced.
        out_of_order: rows of the history of a key in the micro-batch of its first live record or
            later, and live rows behind a later one of their partition.
        last_of_history: number of the last micro-batch with rows of the history.
        first_live: number of the first micro-batch with live rows.
    """

    delivered: int
    lost: int
    duplicated: int
    out_of_order: int
    last_of_history: int
    first_live: int

    @property
    def is_exact(self) -> bool:
        """Every record exactly once, and in order."""
        return not (self.lost or self.duplicated or self.out_of_order)


class _Rows(NamedTuple):
    """Rows of one file.

    Attributes:
        batch: number of the micro-batch.
        table: with the columns key, partition and offset.
    """

    batch: int
    table: pa.Table


def check_switch(sink: Path, produced: Mapping[int, int], history: Mapping[int, int]) -> Switched:
    """Compare the committed rows with what was produced.

    Args:
        sink: folder of parquet files. The log of the sink must not be compacted.
        produced: number of records of each partition, with the history.
        history: number of records of each partition that the history has.
    """
    files = [
        _Rows(batch, pq.read_table(file, columns=_COLUMNS))
        for batch, names in files_by_batch(sink)
        for file in names
    ]
    delivered = sum(rows.table.num_rows for rows in files)
    known = sum(_distinct(files, partition, count) for partition, count in produced.items())
    old = [rows for rows in _parts(files, history, is_live=False) if rows.table.num_rows]
    live = [rows for rows in _parts(files, history, is_live=True) if rows.table.num_rows]
    return Switched(
        delivered=delivered,
        lost=sum(produced.values()) - known,
        duplicated=delivered - known,
        out_of_order=_late(old, live) + sum(_backwards(live, p) for p in produced),
        last_of_history=max((rows.batch for rows in old), default=-1),
        first_live=min((rows.batch for rows in live), default=-1),
    )


def _distinct(files: list[_Rows], partition: int, count: int) -> int:
    """Return how many of the offsets 0 … `count` - 1 of a partition are there."""
    chunks = [chunk for rows in files for chunk in _offsets(rows, partition).chunks]
    offsets = pa.chunked_array(chunks, pa.int64())
    is_known = pc.and_(pc.greater_equal(offsets, 0), pc.less(offsets, count))
    return len(pc.unique(offsets.filter(is_known)))


def _offsets(rows: _Rows, partition: int) -> pa.ChunkedArray:
    return rows.table.filter(pc.equal(rows.table["partition"], partition))["offset"]


def _parts(files: list[_Rows], history: Mapping[int, int], *, is_live: bool) -> Iterator[_Rows]:
    """Yield the rows of each file that are live, or that are of the history."""
    ends = pa.array([history.get(p, 0) for p in range(max(history, default=0) + 1)], pa.int64())
    for batch, table in files:
        are_live = pc.greater_equal(table["offset"], pc.take(ends, table["partition"]))
        yield _Rows(batch, table.filter(are_live if is_live else pc.invert(are_live)))


def _late(old: list[_Rows], live: list[_Rows]) -> int:
    """Count rows of the history of a key that are not before its first live record."""
    first: dict[bytes, int] = {}
    for rows in live:
        for key in pc.unique(rows.table["key"]).to_pylist():
            first[key] = min(rows.batch, first.get(key, rows.batch))
    return sum(
        pc.sum(pc.is_in(rows.table["key"], value_set=keys)).as_py() or 0
        for rows in old
        if (keys := pa.array([k for k, b in first.items() if b <= rows.batch], pa.binary()))
    )


def _backwards(live: list[_Rows], partition: int) -> int:
    """Count live rows of a partition behind a later one.

    Files of a micro-batch have no order, so a partition must be in one.
    """
    last, batch, wrong = -1, -1, 0
    for rows in live:
        offsets = _offsets(rows, partition).to_pylist()
        if offsets:
            wrong += sum(b <= a for a, b in pairwise([last, *offsets])) + (rows.batch == batch)
            last, batch = max(offsets), rows.batch
    return wrong
