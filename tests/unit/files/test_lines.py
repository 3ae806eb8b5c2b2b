"""Lines of ranges of bytes, and what becomes of them."""

import itertools
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from balanced_source.connectors.files import Format
from balanced_source.errors import InvalidSpecError
from balanced_source_spark.contract.ddl import columns_of, selected
from balanced_source_spark.files import lines
from balanced_source_spark.files.lines import (
    LineTooLongError,
    behind_header,
    chunks,
    first_line,
    streamed,
    texts,
)
from balanced_source_spark.files.options import FileReadOptions
from balanced_source_spark.files.parsing import CorruptRecordError, Parser


class Measured:
    """A file that notes how much is asked for from its begin."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.sizes: list[int] = []

    def read_at(self, size: int, at: int) -> bytes:
        self.sizes += [size] if at == 0 else []
        return self._data[at : at + size]


SCHEMA = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", "UTC"))])


@settings(max_examples=200, deadline=None)
@given(
    found=st.lists(st.text(alphabet="aé\r ", max_size=6), min_size=1, max_size=12),
    cuts=st.lists(st.integers(0, 80), max_size=6),
    chunk=st.integers(1, 9),
    is_ended=st.booleans(),
)
def test_any_ranges_of_a_file_have_each_line_once(
    found: list[str], cuts: list[int], chunk: int, is_ended: bool
) -> None:
    data = "\n".join(found).encode() + (b"\n" if is_ended else b"")
    bounds = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    file = pa.BufferReader(data)

    read = b"".join(
        part
        for start, end in itertools.pairwise(bounds)
        for part in chunks(file, start, end, len(data), chunk=chunk)
    )

    assert read == data
    assert b"".join(streamed(pa.BufferReader(data), chunk=chunk)) == data


def test_each_range_has_the_lines_that_begin_in_it() -> None:
    """Otherwise one reader would read a file whose ranges belong to several."""
    data = b"123456789\n" * 10
    file = pa.BufferReader(data)

    sizes = [
        sum(map(len, chunks(file, start, end, len(data)))) for start, end in ((0, 45), (45, 100))
    ]
    assert sizes == [50, 50]


def test_texts_have_no_ends_of_lines() -> None:
    assert texts(b"a\n\nb\r\n").to_pylist() == ["a", "", "b"]
    assert texts(b"last").to_pylist() == ["last"]


def test_a_line_without_end_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "MAX_LINE", 64)
    with pytest.raises(LineTooLongError):
        list(chunks(pa.BufferReader(b"x" * 500), 0, 500, 500, chunk=8))
    with pytest.raises(LineTooLongError, match="a line is longer than 64 bytes"):
        list(streamed(pa.BufferReader(b"x" * 500), chunk=8))


def test_a_file_that_was_cut_ends_the_search_for_a_line() -> None:
    """Its task looks again afterwards, and says so."""
    assert first_line(pa.BufferReader(b"12345"), 3, 99) == 99
    assert list(chunks(pa.BufferReader(b"12\n45"), 0, 99, 99)) == [b"12\n"]


@pytest.mark.parametrize(
    ("found", "body", "is_still_to_come"),
    [
        (b"a,b\n1,2\n", b"1,2\n", False),
        (b"\n \r\na,b\n1,2\n", b"1,2\n", False),
        (b"a,b", b"", False),
        (b"\n \r\n\n", b"", True),
        (b"", b"", True),
    ],
)
def test_the_header_is_the_first_line_that_is_not_blank(
    found: bytes, body: bytes, *, is_still_to_come: bool
) -> None:
    assert behind_header(found) == (body, is_still_to_come)


def parsed(data: bytes, **read: Any) -> list[dict[str, Any]]:
    options = FileReadOptions(**{"kind": Format.JSON, **read})
    parser = Parser(read=options, schema=SCHEMA, names=("id", "at"), has_corrupt=True)
    return [row for table in parser.tables(data) for row in table.to_pylist()]


@pytest.mark.parametrize(
    "at", ["2024-01-01T00:00:00Z", "2024-01-01 00:00:00", "2024-01-01T02:00:00+02:00"]
)
def test_times_with_and_without_a_zone(at: str) -> None:
    json = parsed(b'{"id": 1, "at": "%s", "more": 2}\n' % at.encode())
    csv = parsed(b"1,%s\n" % at.encode(), kind=Format.CSV)

    assert json == csv
    assert json[0]["at"].isoformat() == "2024-01-01T00:00:00+00:00"


@pytest.mark.parametrize("position", range(5))
def test_a_corrupt_line_anywhere_is_found_in_its_place(position: int) -> None:
    good = [b'{"id": %d}\n' % number for number in range(4)]
    data = b"".join([*good[:position], b"[1]\n", *good[position:]])

    rows = parsed(data)

    assert [row["_corrupt_record"] for row in rows] == [
        *[None] * position,
        "[1]",
        *[None] * (4 - position),
    ]
    assert [row["id"] for row in rows if row["_corrupt_record"] is None] == [0, 1, 2, 3]
    assert len(parsed(data, mode="dropmalformed")) == 4
    with pytest.raises(CorruptRecordError, match=r"\[1\]"):
        parsed(data, mode="failfast")


@pytest.mark.parametrize("other", ["1;2024-01-01\n", "x;2024-01-01\n"])
def test_an_empty_value_is_null_beside_the_text_for_null(other: str) -> None:
    """As with Spark: where it is malformed, a row of nulls would stand for the record."""
    data = f'{other};none\nnone;\n"";""\n'.encode()

    rows = parsed(data, kind=Format.CSV, separator=";", null="none")

    assert [(row["id"], row["at"], row["_corrupt_record"]) for row in rows[1:]] == [
        (None, None, None)
    ] * 3


def test_an_empty_text_is_null_without_quotes_alone() -> None:
    read = FileReadOptions(kind=Format.CSV, null="NA")
    schema = pa.schema([("a", pa.string()), ("b", pa.string())])
    parser = Parser(read=read, schema=schema, names=("a", "b"), has_corrupt=False)

    table = next(parser.tables(b'x,\n"","NA"\nNA,x\n'))

    assert table.to_pydict() == {"a": ["x", "", None], "b": [None, "NA", "x"]}


def test_csv_by_its_options() -> None:
    rows = parsed(
        b"'1';none\n2;2024-01-01\n3\n", kind=Format.CSV, separator=";", quote="'", null="none"
    )

    assert [row["id"] for row in rows] == [1, 2, None]
    assert rows[0]["at"] is None
    assert rows[2]["_corrupt_record"] == "3"


@pytest.mark.parametrize(
    ("escape", "inside"), [("", b'x""y'), ("\\", b'x\\"y')], ids=["doubled", "escaped"]
)
def test_a_quote_within_a_csv_value(escape: str, inside: bytes) -> None:
    schema = pa.schema([("text", pa.string())])
    options = FileReadOptions(kind=Format.CSV, escape=escape)
    parser = Parser(read=options, schema=schema, names=("text",), has_corrupt=False)

    rows = [row for table in parser.tables(b'"%s"\n' % inside) for row in table.to_pylist()]
    assert rows == [{"text": 'x"y'}]


def test_an_escape_character_is_removed_before_any_other() -> None:
    """Unlike in Spark's own source, which docs/files.md says."""
    schema = pa.schema([("text", pa.string())])
    options = FileReadOptions(kind=Format.CSV, escape="\\")
    parser = Parser(read=options, schema=schema, names=("text",), has_corrupt=False)

    found = [
        row["text"] for t in parser.tables(b'a\\nb\n"a\\nb"\na\\,b\n') for row in t.to_pylist()
    ]
    assert found == ["anb", "anb", "a,b"]


def test_columns_of_a_ddl() -> None:
    ddl = "id INT, `a,b` STRUCT<x: INT, y: STRING>, d DECIMAL(10,2) COMMENT 'one, two'"

    assert [name for name, _ in columns_of(ddl)] == ["id", "a,b", "d"]
    assert selected(ddl, ["d", "id"]) == "id INT, d DECIMAL(10,2) COMMENT 'one, two'"
    with pytest.raises(InvalidSpecError, match="is not a column"):
        selected(ddl, ["e"])


def test_a_long_line_is_read_in_pieces_that_become_twice_as_long() -> None:
    """And not as long as the longest line may be: a worker has no memory for that."""
    data = b"x" * 100 + b"\n"
    file: Any = Measured(data)

    assert list(chunks(file, 0, len(data), len(data), chunk=10)) == [data]
    assert [size for size in file.sizes if size > 1] == [10, 20, 40, 80, 101]


def test_a_line_that_is_cut_at_the_end_of_a_piece_ends_the_reading() -> None:
    """The file was made shorter meanwhile, to just what was read."""
    file: Any = Measured(b"x" * 10)

    assert list(chunks(file, 0, 100, 100, chunk=10)) == []
