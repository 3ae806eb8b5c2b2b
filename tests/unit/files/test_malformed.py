"""Lines that are found to be malformed without Arrow are those that Arrow rejects by themselves."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from balanced_source.connectors.files import Format
from balanced_source_spark.files import parsing
from balanced_source_spark.files.malformed import test_of as malformed_test_of
from balanced_source_spark.files.options import FileReadOptions
from balanced_source_spark.files.parsing import Parser

UTC = pa.timestamp("us", "UTC")
KINDS = (
    *(pa.int8(), pa.int64(), pa.float32(), pa.float64(), pa.bool_(), pa.decimal128(9, 2)),
    *(pa.string(), pa.binary(), pa.date32(), UTC, pa.timestamp("us")),
)
TEXTS = (
    *("1", "-1", "+1", " 1", "300", "0x1F", "-0x1F", "1.0", ".5", "5.", "1e3", "1e400", "inf"),
    *("-Infinity", "NaN", "nan", "true", "TRUE", "yes", "", " ", "x", "1 ", "9223372036854775808"),
    *(
        "2024-01-01",
        " 2024-01-01",
        "2024-1-1",
        "2024-13-01",
        "2024-02-30",
        "20240101",
        "0000-01-01",
    ),
    *("2024-01-01T00", "2024-01-01 23:59", "2024-01-01T24:00:00Z", "2024-01-01T00:00:00.123456789"),
    *(
        "2024-01-01T00:00:00+0200",
        "2024-01-01x",
        "é",
        "1,1",
        'a"b',
        '"',
        '""',
        "a\\",
        "null",
        "#N/A",
    ),
)
VALUES = (
    *("1", "-1", "-0", "300", "1.0", "1e3", "1e400", "01", "+1", "NaN", "Inf", "-Infinity", "null"),
    *("true", "[]", "[1]", "[1.5]", "[null]", "{}", '{"x": 1}', '{"x": "1"}', '{"y": []}', ""),
    *(
        "9223372036854775808",
        '"\\ud800"',
        '"\\u0000"',
        '"a\tb"',
        '"\\x"',
        '"é"',
        "1 2",
        "tru",
        "[,]",
    ),
    *('"NaN"', '"Infinity"', '"-Infinity"', '"Inf"'),
    *(f'"{text}"' for text in TEXTS if '"' not in text and "\\" not in text),
)
LINES = (
    *(
        "{",
        "}",
        "[]",
        "null",
        "nullx",
        "1",
        '"a"',
        "{} {}",
        '{"a": 1} x',
        '{"a": 1}{"b": 2}',
        "é{}",
    ),
    *(
        '{"a": 1,}',
        "{'a': 1}",
        '{"a" 1}',
        '\ufeff{"a": 1}',
        "\v{}",
        "{}\v",
        "// x",
        "Infinity",
        "\0{}",
    ),
)


def parser(kind: Format, columns: dict[str, pa.DataType], **how: Any) -> Parser:
    schema = pa.schema(list(columns.items()))
    read = FileReadOptions(kind=kind, **how)
    return Parser(read=read, schema=schema, names=tuple(schema.names), has_corrupt=True)


def check(each: Parser, line: str) -> None:
    """Check that a line that is found is one that Arrow rejects."""
    data = line.encode() + b"\n"
    if each._is_blank(data):
        return
    if malformed_test_of(each.read, each.schema, each.names)(data):
        assert each._tried(data) is None, (line, each.schema)


@settings(max_examples=1500, deadline=None)
@given(
    first=st.sampled_from(KINDS),
    second=st.sampled_from(
        (*KINDS, pa.list_(pa.int64()), pa.list_(UTC), pa.struct([("x", pa.int64())]))
    ),
    values=st.lists(st.sampled_from(VALUES), min_size=1, max_size=2),
    names=st.sampled_from([("a", "é"), ("a", "a"), ("é", "z"), ("A", "a")]),
)
def test_json(first: Any, second: Any, values: list[str], names: tuple[str, str]) -> None:
    members = ", ".join(f'"{name}": {value}' for name, value in zip(names, values, strict=False))
    check(parser(Format.JSON, {"a": first, "é": second}), "{" + members + "}")


@pytest.mark.parametrize("kind", [pa.int8(), pa.int16(), pa.int32(), pa.int64()])
def test_the_whole_range_of_an_integer_is_well_formed(kind: pa.DataType) -> None:
    each, most = parser(Format.JSON, {"a": kind}), 2 ** (kind.bit_width - 1)
    is_malformed = malformed_test_of(each.read, each.schema, each.names)

    found = [number for number in (-most - 1, -most, most - 1, most) if is_malformed(of_a(number))]

    assert found == [-most - 1, most]


def of_a(number: int) -> bytes:
    return b'{"a": %d}\n' % number


@pytest.mark.parametrize("line", LINES)
def test_lines_that_are_no_object(line: str) -> None:
    check(parser(Format.JSON, {"a": pa.int64(), "b": pa.int64()}), line)


@settings(max_examples=1500, deadline=None)
@given(
    kinds=st.lists(st.sampled_from(KINDS), min_size=2, max_size=2),
    values=st.lists(st.tuples(st.sampled_from(TEXTS), st.booleans()), min_size=1, max_size=3),
    how=st.sampled_from(
        [{}, {"null": "x"}, {"quote": ""}, {"quote": "'"}, {"escape": "\\"}, {"separator": "1"}]
    ),
    end=st.sampled_from(["", "\r", ",", " "]),
)
def test_csv(
    kinds: list[Any], values: list[tuple[str, bool]], how: dict[str, Any], end: str
) -> None:
    each = parser(Format.CSV, {"a": kinds[0], "b": kinds[1]}, **how)
    quote = each.read.quote
    cells = [quote + text + quote if is_quoted else text for text, is_quoted in values]
    check(each, each.read.separator.join(cells) + end)


@pytest.mark.parametrize("mode", ["permissive", "dropmalformed"])
@pytest.mark.parametrize(
    ("kind", "good", "malformed"),
    [
        (Format.JSON, b'{"a": %d, "b": "x"}\n', b'{"a": "x", "b": %d}\n'),
        (Format.JSON, b'{"a": %d, "b": "x"}{"b": "second"}\n', b"log line %d\n"),
        (Format.JSON, b'{"a": %d, "b": "2024"}\n\n', b'{"a": 1, "a": %d}\n'),
        (Format.CSV, b"%d,x\n", b"x,%d\n"),
        (Format.CSV, b'%d,"x, y"\n \n', b'"x","%d"\n'),
    ],
)
def test_many_malformed_lines_are_parsed_in_few_calls(
    kind: Format, good: bytes, malformed: bytes, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    each = parser(kind, {"a": pa.int64(), "b": pa.string()}, mode=mode)
    lines = [(malformed if n % 3 else good) % n for n in range(600)]
    expected = [row for line in lines for table in each.tables(line) for row in table.to_pylist()]
    calls: list[bytes] = []
    tried = Parser._tried
    monkeypatch.setattr(
        Parser, "_tried", lambda self, data: (calls.append(data), tried(self, data))[1]
    )

    found = [row for table in each.tables(b"".join(lines)) for row in table.to_pylist()]

    assert found == expected
    is_told = b'"a": 1, "a"' not in malformed and b"}{" not in good
    assert len(calls) < 10 or not is_told
    assert len(found) >= (600 if mode == "permissive" else 200)


@pytest.mark.parametrize("kind", [pa.date32(), UTC], ids=str)
def test_many_malformed_times_are_found_in_few_calls(
    kind: pa.DataType, monkeypatch: pytest.MonkeyPatch
) -> None:
    each = parser(Format.JSON, {"a": kind})
    good, malformed = b'{"a": "2026-01-31"}\n', b'{"a": "tomorrow"}\n'
    calls: list[bytes] = []
    tried = Parser._tried
    monkeypatch.setattr(
        Parser, "_tried", lambda self, data: (calls.append(data), tried(self, data))[1]
    )

    (table,) = each.tables((good + malformed) * 300)

    assert (table.num_rows, table.column("a").null_count) == (600, 300)
    assert len(calls) < 10


def test_a_block_of_malformed_lines_makes_one_table() -> None:
    """Each table costs time, whatever its size."""
    each = parser(Format.JSON, {"a": pa.int64()})
    data = b'{"a": 1}\n{"a": "x"}\n' * (parsing.SIFTED // 10)

    assert [table.num_rows for table in each.tables(data)] == [2 * (parsing.SIFTED // 10)]
