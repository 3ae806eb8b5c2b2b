"""Decimals of lines: a number is read exactly, or its record is malformed."""

from decimal import Decimal, InvalidOperation, localcontext
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from balanced_source.connectors.files import Format
from balanced_source_spark.files.options import FileReadOptions
from balanced_source_spark.files.parsing import Parser

KINDS = ((38, 10), (38, 0), (38, 38), (10, 2), (3, 3), (18, 18), (5, 0))


def read(kind: Format, data: str, precision: int, scale: int, **how: Any) -> list[Any]:
    schema = pa.schema([("m", pa.decimal128(precision, scale)), ("z", pa.string())])
    options = FileReadOptions(kind=kind, mode="dropmalformed", **how)
    parser = Parser(read=options, schema=schema, names=("m", "z"), has_corrupt=False)
    tables = list(parser.tables(data.encode()))
    for table in tables:
        table.validate(full=True)
    return [row["m"] for table in tables for row in table.to_pylist()]


def exact(text: str, precision: int, scale: int) -> list[Decimal]:
    """Return the number in a list; none where the type does not hold it."""
    with localcontext(prec=precision) as context:
        context.traps[InvalidOperation] = True
        try:
            found = Decimal(text).quantize(Decimal(1).scaleb(-scale))
        except InvalidOperation:
            return []
    return [found] if found == Decimal(text) else []


@settings(max_examples=200, deadline=None)
@given(
    digits=st.integers(10**37, 10**38 - 1),
    cut=st.sampled_from((0, 1, 9, 10, 11, 27, 28, 29, 30, 37)),
    exponent=st.integers(-40, 40),
    is_negative=st.booleans(),
    size=st.sampled_from(KINDS),
)
@example(digits=9 * 10**37, cut=37, exponent=37, is_negative=False, size=(38, 10))
@example(digits=10**37, cut=0, exponent=-39, is_negative=False, size=(38, 0))
@example(digits=1234567891 * 10**28, cut=28, exponent=-1, is_negative=True, size=(10, 2))
def test_a_number_is_exact_or_malformed(
    digits: int, cut: int, exponent: int, is_negative: bool, size: tuple[int, int]
) -> None:
    text = f"{'-' * is_negative}{digits // 10**cut}e{exponent}"

    expected = exact(text, *size)
    assert read(Format.CSV, f"{text},z\n", *size) == expected
    assert read(Format.JSON, f'{{"m": {text}}}\n', *size) == expected


def test_zeros_behind_the_last_digit_do_not_count() -> None:
    text = "1.5" + "0" * 20

    assert read(Format.CSV, f"{text},z\n", 3, 1) == [Decimal("1.5")]
    assert read(Format.JSON, f'{{"m": {text}}}\n', 3, 1) == [Decimal("1.5")]
    assert read(Format.JSON, f'{{"m": "{text}"}}\n', 3, 1) == [Decimal("1.5")]


@pytest.mark.parametrize("cell", ["1.5", " 1.5", "1.5 ", "\t1.5", '"1.5"', '" 1.5 "', "+1.5"])
def test_blanks_and_quotes_around_a_number_do_not_count(cell: str) -> None:
    if cell == "+1.5":
        assert read(Format.CSV, f"{cell},z\n", 10, 2) == [Decimal("1.50")]
        return
    assert read(Format.CSV, f"{cell},z\n2,z\n", 10, 2) == [Decimal("1.50"), Decimal(2)]


def test_null_is_none() -> None:
    assert read(Format.CSV, ',z\n"",z\n', 10, 2) == [None, None]
    assert read(Format.CSV, 'NA,z\n"NA",z\n', 10, 2, null="NA") == [None, None]
    assert read(Format.JSON, '{"m": null}\n{}\n', 10, 2) == [None, None]


def test_decimals_within_structs_and_lists_are_exact() -> None:
    kind = pa.decimal128(38, 10)
    schema = pa.schema([("a", pa.list_(kind)), ("o", pa.struct([("m", kind)]))])
    options = FileReadOptions(kind=Format.JSON)
    parser = Parser(read=options, schema=schema, names=("a", "o"), has_corrupt=True)

    data = b'{"a": [1.5, null], "o": {"m": 2}}\n{"a": [9e37]}\n{"o": {"m": 9e37}}\n'
    rows = [row for table in parser.tables(data) for row in table.to_pylist()]

    assert rows[0]["a"] == [Decimal("1.5"), None]
    assert rows[0]["o"] == {"m": Decimal(2)}
    assert [row["_corrupt_record"] is not None for row in rows] == [False, True, True]
