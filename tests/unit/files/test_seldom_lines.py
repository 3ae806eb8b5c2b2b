"""Lines and stripes that few files have."""

import io
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import orc

from balanced_source.connectors.files import Format
from balanced_source_spark.files import columnar
from balanced_source_spark.files.malformed import test_of as malformed_test_of
from balanced_source_spark.files.options import FileReadOptions
from balanced_source_spark.files.parsing import Parser

SCHEMA = pa.schema([("a", pa.string()), ("b", pa.string())])


def parsed(data: bytes, **how: Any) -> list[Any]:
    read = FileReadOptions(kind=Format.CSV, **how)
    parser = Parser(read=read, schema=SCHEMA, names=("a", "b"), has_corrupt=True)
    return [row["_corrupt_record"] for table in parser.tables(data) for row in table.to_pylist()]


@pytest.mark.parametrize("before", [b"", b"1,2\n"], ids=["alone", "behind another"])
@pytest.mark.parametrize(
    ("line", "how"),
    [(b"1,x\\", {"escape": "\\"}), (b'1,"x', {}), (b"1,'x", {"quote": "'"})],
    ids=["escape", "quote", "other quote"],
)
def test_a_last_line_that_needs_a_further_one_is_corrupt(
    before: bytes, line: bytes, how: dict[str, str]
) -> None:
    """What it needs would be taken from the next block of the file, if there is one."""
    good = [None] * before.count(b"\n")

    assert parsed(before + line + b"\n", **how) == [*good, line.decode()]
    assert parsed(before + line + b"\n \n\n", **how) == [*good, line.decode()]


@pytest.mark.parametrize(
    ("line", "how"),
    [(b"1,x\\y", {"escape": "\\"}), (b'1,"x"', {}), (b"1,'x", {}), (b"1,x\\", {})],
    ids=["escape", "quote", "no quote", "no escape"],
)
def test_a_last_line_with_marks_that_are_closed_is_a_record(
    line: bytes, how: dict[str, str]
) -> None:
    assert parsed(line + b"\n", **how) == [None]


@pytest.mark.parametrize(
    "value", [b"1" * 5_000, b"[" * 100_000 + b"]" * 100_000], ids=["digits", "lists in lists"]
)
def test_what_python_cannot_read_is_left_to_arrow(value: bytes) -> None:
    read = FileReadOptions(kind=Format.JSON)
    is_malformed = malformed_test_of(read, pa.schema([("a", pa.int64())]), ())

    assert is_malformed(b'{"a": %b}' % value) is False
    assert is_malformed(b'{"a": x}') is True


@pytest.mark.parametrize("columns", [{"n": pa.int64()}, {}], ids=["a column", "none"])
def test_each_stripe_is_read_in_the_range_in_which_it_begins(columns: dict[str, Any]) -> None:
    """Four stripes count as quarters of the file, whatever their bytes are."""
    file = io.BytesIO()
    with orc.ORCWriter(file, stripe_size=1024, batch_size=1024, compression="uncompressed") as into:
        for stripe in range(4):
            into.write(pa.table({"n": list(range(stripe * 20_000, (stripe + 1) * 20_000))}))
    data = pa.BufferReader(file.getvalue())
    count, size = orc.ORCFile(data).nstripes, data.size()
    assert count > 3
    firsts = [number * size // count for number in range(count)]

    def rows(start: int, end: int) -> list[Any]:
        found = columnar.orc(data, start, end, size, pa.schema(list(columns.items())))
        return [row for table in found for row in table.to_pylist()]

    everything = rows(0, size)
    assert len(everything) == 80_000
    cut = firsts[2]
    assert rows(0, cut) + rows(cut, size) == everything
    assert len(rows(cut, cut + 1)) > 0
    assert rows(cut + 1, firsts[3]) == []
    assert rows(firsts[1] + 1, cut + 1) == rows(cut, cut + 1)
