"""A reader may use its records again, and what they refer to; each row is as it was collected."""

from collections import Counter
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

from balanced_source.reader import kept
from balanced_source_spark.journal.buffer import Buffer
from support.journal_query import Make
from support.reused_records import ReusedHalf
from support.tapes import Shelf


@pytest.mark.parametrize("has_views", [False, True])
def test_rows_are_those_that_were_collected(make: Make, *, has_views: bool) -> None:
    world = Shelf(lengths={"a": 60, "b": 40})
    query = make(ReusedHalf(world, has_views=has_views), max_records=None)
    query.read_all()

    assert query.records == Counter(world.records())


class Pair(NamedTuple):
    number: int


@dataclass(frozen=True)
class Frozen:
    number: int


@dataclass
class Open:
    number: int


@pytest.mark.parametrize("record", [(1,), Pair(1), Frozen(1), "text", b"bytes", 1, None])
def test_an_immutable_record_is_not_copied(record: Any) -> None:
    assert kept(record) is record


@pytest.mark.parametrize("record", [[1], {"n": 1}, Open(1)])
def test_another_record_is_copied(record: Any) -> None:
    assert kept(record) == record
    assert kept(record) is not record


@pytest.mark.parametrize("record", [bytearray(b"x"), memoryview(b"x")])
def test_a_view_becomes_bytes(record: Any) -> None:
    assert kept(record) == b"x"


class Unique:
    """Cannot be copied."""

    number = 0

    def __copy__(self) -> "Unique":
        raise TypeError("there is only one")


def test_a_record_that_cannot_be_copied_becomes_a_row_at_once() -> None:
    buffer: Buffer[Unique] = Buffer(
        lambda r: pa.RecordBatch.from_pydict({"n": [u.number for u in r]})
    )
    one = Unique()
    for number in range(20):
        one.number = number
        buffer.add(one)

    assert [n for batch in buffer.batches() for n in batch["n"].to_pylist()] == list(range(20))
    buffer.close()
