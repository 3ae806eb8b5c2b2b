"""Checks a file sink.

Each numbered record is there once, and those of a key are there in the order of their numbers.

Shares nothing with the product: it reads Spark's log of committed files, and the files.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq

from support.story.sink import files_by_batch


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What a sink holds, against what should be there.

    Attributes:
        delivered: rows.
        lost: records that are in no row.
        duplicated: rows beyond the first of their record, and rows of records that were never
            produced.
        out_of_order: rows of a key that come after a later record of the key.
    """

    delivered: int
    lost: int
    duplicated: int
    out_of_order: int

    @property
    def is_exact(self) -> bool:
        """Every record exactly once, and in order."""
        return not (self.lost or self.duplicated or self.out_of_order)


class Row(NamedTuple):
    """A row of the sink.

    Attributes:
        batch: number of the micro-batch.
        file: that holds it.
        key: partition key.
        number: of the record.
    """

    batch: int
    file: str
    key: str
    number: int


def check_order(sink: Path, produced: int) -> Order:
    """Compare the committed rows with the records 0 … `produced` - 1.

    Args:
        sink: folder of parquet files with the columns `partitionKey` and `data`, which holds the
            number as text. The log of the sink must not be compacted.
        produced: number of records.
    """
    found = list(_rows(sink))
    counts = Counter(row.number for row in found)
    known = sum(1 for number in counts if 0 <= number < produced)
    return Order(
        delivered=len(found),
        lost=produced - known,
        duplicated=len(found) - known,
        out_of_order=_out_of_order(found),
    )


def _out_of_order(found: list[Row]) -> int:
    """Count rows behind a later record of their key.

    Files of a micro-batch have no order, so a key must be in one.
    """
    last: dict[str, Row] = {}
    wrong = 0
    for row in found:
        former = last.get(row.key)
        if former is not None:
            is_apart = former.batch == row.batch and former.file != row.file
            wrong += former.number >= row.number or is_apart
        if former is None or row.number > former.number:
            last[row.key] = row
    return wrong


def _rows(sink: Path) -> Iterator[Row]:
    for batch, files in files_by_batch(sink):
        for file in files:
            for row in pq.read_table(file, columns=["partitionKey", "data"]).to_pylist():
                yield Row(batch, file.name, row["partitionKey"], int(row["data"]))
