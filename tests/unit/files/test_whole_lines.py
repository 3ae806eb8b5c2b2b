"""Lines are records of their own, whatever the lines around them are and wherever a block ends."""

import datetime as dt
import itertools
import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from balanced_source.connectors.files import Format
from balanced_source_spark.files.lines import chunks
from balanced_source_spark.files.options import FileReadOptions
from balanced_source_spark.files.parsing import Parser

UTC = pa.timestamp("us", "UTC")
NOON = dt.datetime(2024, 1, 2, 12, tzinfo=dt.UTC)
JSON = (
    b'{"a": "1"}',
    b'{"a":',
    b'"1"}',
    b"null",
    b" null",
    b"",
    b" ",
    b'{"a": "}\\nnull"}',
    b"[1]",
)
CSV = (b"1,2", b'"1",', b'1,"2', b'"1,2"', b'3",4', b"", b" ", b"1", b'1,""', b"\\", b'5" pipe,6')


def parsed(kind: Format, data: bytes, **columns: pa.DataType) -> list[list[Any]]:
    schema = pa.schema(list((columns or {"a": pa.string(), "b": pa.string()}).items()))
    read = FileReadOptions(kind=kind, escape="")
    parser = Parser(read=read, schema=schema, names=tuple(schema.names), has_corrupt=True)
    return [list(row.values()) for table in parser.tables(data) for row in table.to_pylist()]


@settings(max_examples=300, deadline=None)
@given(
    picked=st.lists(st.tuples(st.integers(0, 99), st.booleans()), min_size=1, max_size=9),
    kind=st.sampled_from([(Format.JSON, JSON), (Format.CSV, CSV)]),
    cuts=st.lists(st.integers(0, 99), max_size=3),
    chunk=st.sampled_from([1, 9, 1000]),
    is_ended=st.booleans(),
)
def test_each_line_means_the_same_in_any_file(
    picked: list[tuple[int, bool]],
    kind: tuple[Format, tuple[bytes, ...]],
    cuts: list[int],
    chunk: int,
    is_ended: bool,
) -> None:
    form, known = kind
    # Most lines are good ones, so that several are parsed at once.
    lines = [known[n % len(known)] if is_odd else known[0] for n, is_odd in picked]
    data = b"\n".join([*lines, b""] if is_ended else lines)
    bounds = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})

    found = [
        row
        for start, end in itertools.pairwise(bounds)
        for part in chunks(pa.BufferReader(data), start, end, len(data), chunk=chunk)
        for row in parsed(form, part)
    ]

    assert found == [row for line in lines for row in parsed(form, line + b"\n")]


def test_the_last_line_of_a_file_needs_no_end() -> None:
    for line in (b'"1",', b'"1"x,', b'"",', b"1,"):
        assert parsed(Format.CSV, line) == parsed(Format.CSV, line + b"\n")


def test_an_open_quote_takes_no_further_lines() -> None:
    data = b'"open,1\n2,3\n"again,4\n5,6\n7,"end\n'

    assert parsed(Format.CSV, data) == [
        [None, None, '"open,1'],
        ["2", "3", None],
        [None, None, '"again,4'],
        ["5", "6", None],
        [None, None, '7,"end'],
    ]


@pytest.mark.parametrize("separator", [b"\n", b"\r\n", b"\n\n"])
def test_null_is_a_malformed_record(separator: bytes) -> None:
    data = separator.join([b"\xef\xbb\xbfnull", b'{"a": null}', b"\tnull", b'{"a": "null"}'])

    assert [row[2] for row in parsed(Format.JSON, data)] == ["\ufeffnull", None, "\tnull", None]


def test_an_object_over_several_lines_is_malformed_in_each() -> None:
    found = parsed(Format.JSON, b'{"a":\n"1"}\n{"a": "2"}\n')

    assert found == [[None, None, '{"a":'], [None, None, '"1"}'], ["2", None, None]]


def test_several_objects_in_one_line_are_all_read() -> None:
    assert [row[0] for row in parsed(Format.JSON, b'{"a":"1"}{"a":"2"}\n{"a":"3"}\n')] == list(
        "123"
    )


def test_a_line_of_separators_is_a_record() -> None:
    read = FileReadOptions(kind=Format.CSV, separator="\t")
    schema = pa.schema([("a", pa.string()), ("b", pa.int64())])
    parser = Parser(read=read, schema=schema, names=("a", "b"), has_corrupt=False)

    assert [table.to_pylist() for table in parser.tables(b"\t\n")] == [[{"a": None, "b": None}]]


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        ("2024-01-02T12:00:00.123456789Z", NOON.replace(microsecond=123456)),
        ("2024-01-02 12:00:00.1234567", NOON.replace(microsecond=123456)),
        ("2024-01-02T14:00:00.000000000+02:00", NOON),
        ("9999-12-31T00:00:00Z", dt.datetime(9999, 12, 31, tzinfo=dt.UTC)),
        ("9999-12-31T23:59:59.9999999", dt.datetime.max.replace(tzinfo=dt.UTC)),
        ("1969-12-31T23:59:59.999999999Z", dt.datetime.fromtimestamp(-1e-6, dt.UTC)),
        ("0001-01-01 00:00:00.0000000Z", dt.datetime(1, 1, 1, tzinfo=dt.UTC)),
        ("2024-01-02T12:00:00.123456789012Z", NOON.replace(microsecond=123456)),
    ],
)
def test_digits_beyond_microseconds_are_cut_off(at: str, expected: dt.datetime) -> None:
    assert parsed(Format.CSV, at.encode() + b"\n", at=UTC) == [[expected, None]]
    assert parsed(Format.JSON, b'{"at": "%s"}\n' % at.encode(), at=UTC) == [[expected, None]]


def test_null_in_quotes_is_null_unless_it_is_a_text() -> None:
    """Programs that put all values in quotes write missing ones as two quotes."""
    columns = {"n": pa.int64(), "text": pa.string(), "at": UTC, "day": pa.date32()}

    assert parsed(Format.CSV, b'"1","","",""\n"","""","2024-01-02 12:00",""\n', **columns) == [
        [1, "", None, None, None],
        [None, '"', NOON, None, None],
    ]
    assert parsed(Format.CSV, b'"","1"\n', n=pa.int64(), x=pa.float64()) == [[None, 1.0, None]]


def test_nan_and_infinity_may_be_in_quotes() -> None:
    """Spark writes them so. A text of the same form stays a text."""
    member = pa.struct([("é", pa.float32()), ("text", pa.string())])
    columns = {"x": pa.float64(), "text": pa.string(), "s": member, "l": pa.list_(member)}
    lines = """
{"x": "NaN", "text": "NaN", "s": {"é":"-Infinity", "text": "Infinity"}, "l": [{"é":"Infinity"}]}
{"x": 1.5, "text": "\\"x\\":\\"NaN\\"", "s": {"text": "NaN"}}
{"x": "nan"}
{"x": -Infinity}
""".lstrip()

    found = parsed(Format.JSON, lines.encode(), **columns)

    assert str(found[0]) == str(
        [
            *(math.nan, "NaN", {"é": -math.inf, "text": "Infinity"}),
            *([{"é": math.inf, "text": None}], None),
        ]
    )
    assert found[1:] == [
        [1.5, '"x":"NaN"', {"é": None, "text": "NaN"}, None, None],
        [None, None, None, None, '{"x": "nan"}'],
        [-math.inf, None, None, None, None],
    ]
    names = {"x": pa.float64(), "s": pa.struct([("x", pa.string())])}
    same = b'{"x": 1, "s": {"x": "NaN"}}\n{"x": "Infinity", "s": null}\n'
    assert parsed(Format.JSON, same, **names) == [[1.0, {"x": "NaN"}, None], [math.inf, None, None]]


@pytest.mark.parametrize("kind", [Format.JSON, Format.CSV])
def test_text_that_is_not_utf_8_is_malformed(kind: Format) -> None:
    good, wrong = (
        (b'{"a": "\xc3\xa9", "b": ""}', b'{"a": "\xff"}')
        if kind is Format.JSON
        else (b'\xc3\xa9,""', b'\xff,""')
    )

    assert parsed(kind, good + b"\n" + wrong + b"\n") == [
        ["é", "", None],
        [None, None, wrong.decode("utf-8", "replace")],
    ]


@pytest.mark.parametrize("names", [(), ("a", "b")])
@pytest.mark.parametrize(("mode", "rows"), [("permissive", 4), ("dropmalformed", 3)])
@pytest.mark.parametrize(
    ("kind", "data"),
    [
        (Format.JSON, b'{"a": 1}\nx\n\n{"a": 2}{"a": 3}\n'),
        (Format.CSV, b'1,2\n"x\n\n3,4\n5,6'),
    ],
)
def test_records_count_where_no_column_of_theirs_is_read(
    kind: Format, data: bytes, mode: str, rows: int, names: tuple[str, ...]
) -> None:
    """Such as where a query asks for the paths of the files alone."""
    read = FileReadOptions(kind=kind, mode=mode)
    parser = Parser(read=read, schema=pa.schema([]), names=names, has_corrupt=False)

    assert sum(table.num_rows for table in parser.tables(data)) == rows


def test_times_in_structs_and_lists_are_those_of_columns() -> None:
    member = pa.struct([("day", pa.date32()), ("at", UTC)])
    lines = (
        b'{"s": {"at": "2024-01-02 12:00:00", "day": "2024-01-02"}, "l": ["2024-01-02", null]}\n'
        b'{"s": null, "l": []}\n'
        b'{"s": {"at": "2024-01-02T12:00:00.000000000Z"}}\n'
        b'{"s": {"day": "tomorrow"}}\n'
    )

    assert parsed(Format.JSON, lines, s=member, l=pa.list_(pa.date32())) == [
        [{"day": NOON.date(), "at": NOON}, [NOON.date(), None], None],
        [None, [], None],
        [{"day": None, "at": NOON}, None, None],
        [None, None, '{"s": {"day": "tomorrow"}}'],
    ]
