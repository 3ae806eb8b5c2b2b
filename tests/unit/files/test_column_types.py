"""Which types of columns in files fit which types of the schema: no value changes silently."""

import datetime as dt
import io
from contextlib import nullcontext
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from balanced_source_adapters.files.column_types import as_named, check_fits, misfit, stored
from balanced_source_spark.files import columnar

UTC = pa.timestamp("us", "UTC")
LOCAL = pa.timestamp("us")
DAY = dt.date(2026, 1, 2)
AT = dt.datetime(2026, 1, 2, 3, tzinfo=dt.UTC)


def parquet(column: pa.Array, wanted: pa.DataType) -> list[Any]:
    file = io.BytesIO()
    pq.write_table(pa.table({"x": column}), file)
    data = pa.BufferReader(file.getvalue())
    found = columnar.parquet(data, 0, data.size(), pa.schema([("x", wanted)]))
    return [row["x"] for part in found for row in part.to_pylist()]


@pytest.mark.parametrize(
    ("found", "wanted", "value"),
    [
        (pa.array([7], pa.int8()), pa.int64(), 7),
        (pa.array([200], pa.uint8()), pa.int16(), 200),
        (pa.array([2**32 - 1], pa.uint32()), pa.int64(), 2**32 - 1),
        (pa.array([2**53]), pa.float64(), 2.0**53),
        (pa.array([-(2**15)], pa.int16()), pa.float32(), -(2.0**15)),
        (pa.array([2**64 - 1], pa.uint64()), pa.decimal128(20, 0), Decimal(2**64 - 1)),
        (pa.array([-(2**63)]), pa.decimal128(19, 0), Decimal(-(2**63))),
        (pa.array([-(2**31)], pa.int32()), pa.float64(), -(2.0**31)),
        (pa.array([7], pa.int32()), pa.decimal128(12, 2), Decimal("7.00")),
        (pa.array([1.5], pa.float16()), pa.float32(), 1.5),
        (pa.array([1.5], pa.float32()), pa.float64(), 1.5),
        (pa.array([Decimal("1.25")]), pa.decimal128(38, 10), Decimal("1.2500000000")),
        (pa.array(["a"], pa.large_string()), pa.string(), "a"),
        (pa.array(["a"]).dictionary_encode(), pa.string(), "a"),
        (pa.array(["a"]), pa.binary(), b"a"),
        (pa.array([b"a"]), pa.string(), "a"),
        (pa.array([b"ab"], pa.binary(2)), pa.binary(), b"ab"),
        (pa.array([DAY]), LOCAL, dt.datetime(2026, 1, 2)),  # noqa: DTZ001 - without a zone
        (pa.array([AT], pa.timestamp("ms", "UTC")), UTC, AT),
        (pa.array([AT], pa.timestamp("ns", "UTC")), UTC, AT),
        (pa.array([None], pa.null()), pa.int64(), None),
        (pa.array([5], pa.int32()), pa.int8(), 5),
        (pa.array([1000], pa.time32("ms")), pa.int32(), 1000),
        (pa.array([1000]), pa.duration("us"), dt.timedelta(milliseconds=1)),
        (pa.array([[1]], pa.list_(pa.int32())), pa.list_(pa.int64()), [1]),
    ],
    ids=str,
)
def test_wider_types_hold_every_value(found: pa.Array, wanted: pa.DataType, value: Any) -> None:
    assert parquet(found, wanted) == [value]


def test_dictionaries_of_several_row_groups_within_others_are_read() -> None:
    """Programs such as polars write them where a column has few different texts."""
    texts = ["a", "b", "a", "c"]
    hidden = pa.array(texts).dictionary_encode()
    table = pa.table(
        {
            "s": pa.StructArray.from_arrays([hidden], ["t"]),
            "l": pa.ListArray.from_arrays(pa.array(range(5), pa.int32()), hidden),
        }
    )
    file = io.BytesIO()
    pq.write_table(table, file, row_group_size=2)
    data = pa.BufferReader(file.getvalue())
    schema = pa.schema([("s", pa.struct([("t", pa.string())])), ("l", pa.list_(pa.string()))])

    found = columnar.parquet(data, 0, data.size(), schema)

    assert [row for part in found for row in part.to_pylist()] == [
        {"s": {"t": text}, "l": [text]} for text in texts
    ]


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (pa.float64(), pa.float32()),
        (pa.float64(), pa.int64()),
        (pa.int32(), pa.float32()),
        (pa.int64(), pa.int32()),
        (pa.uint64(), pa.int64()),
        (pa.int64(), pa.decimal128(12, 2)),
        (pa.int64(), pa.decimal128(18, 0)),
        (pa.uint64(), pa.decimal128(19, 0)),
        (pa.decimal128(10, 2), pa.decimal128(10, 3)),
        (pa.decimal128(10, 2), pa.decimal128(12, 1)),
        (pa.decimal128(10, 2), pa.float64()),
        (pa.bool_(), pa.int64()),
        (pa.int64(), pa.string()),
        (pa.string(), pa.int64()),
        (LOCAL, pa.date32()),
        (LOCAL, pa.string()),
        (pa.date32(), UTC),
        (pa.binary(2), pa.string()),
        (pa.struct([("a", pa.float64())]), pa.struct([("a", pa.float32())])),
        (pa.list_(pa.float64()), pa.list_(pa.float32())),
        (pa.map_(pa.string(), pa.float64()), pa.map_(pa.string(), pa.float32())),
        (pa.struct([("a", pa.int64())]), pa.list_(pa.int64())),
    ],
    ids=str,
)
def test_types_that_lose_values_are_rejected(found: pa.DataType, wanted: pa.DataType) -> None:
    with pytest.raises(
        TypeError, match=r"column x.* which does not fit [A-Z<>(),_ ]+.* of the sch"
    ):
        check_fits("x", found, wanted)


def test_a_file_without_rows_is_rejected_as_well() -> None:
    """Rows that come later would not fit either."""
    table, wanted = pa.table({"x": pa.array([], pa.float64())}), pa.schema([("x", pa.float32())])
    file = io.BytesIO()
    orc.write_table(table, file)
    data = pa.BufferReader(file.getvalue())

    with pytest.raises(TypeError, match="column x has type double, which does not fit FLOAT"):
        parquet(pa.array([], pa.float64()), pa.float32())
    with pytest.raises(TypeError, match="column x has type double, which does not fit FLOAT"):
        list(columnar.orc(data, 0, data.size(), data.size(), wanted))


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (pa.array([300], pa.int32()), pa.int8()),
        (pa.array([b"\xff"]), pa.string()),
        (pa.array([2**53 + 1]), pa.float64()),
        (pa.array([1], pa.timestamp("ns", "UTC")), UTC),
    ],
    ids=str,
)
def test_values_of_types_that_may_fit_are_checked(found: pa.Array, wanted: pa.DataType) -> None:
    with pytest.raises(TypeError, match=r"column x has type .*, which does not fit .* schema: "):
        parquet(found, wanted)


def test_a_field_that_the_schema_does_not_have_stays_as_it_is() -> None:
    found = pa.struct([("A", pa.int32()), ("other", pa.string())])
    assert as_named(found, pa.struct([("a", pa.int32())])) == pa.struct(
        [("a", pa.int32()), ("other", pa.string())]
    )


def test_what_hides_the_type_of_values_is_taken_off() -> None:
    texts = pa.array(["a", "b", "a"])
    assert stored(texts) is texts
    assert stored(texts.dictionary_encode()).equals(texts)

    numbers = pa.array([bytes(16)], pa.binary(16))
    hidden = pa.ExtensionArray.from_storage(pa.uuid(), numbers)
    assert stored(hidden).equals(numbers)


@pytest.mark.parametrize(
    ("wanted", "name"),
    [
        (
            pa.struct([("a", pa.int64()), ("b", pa.struct([("c", pa.string())]))]),
            "STRUCT<a: BIGINT, b: STRUCT<c: STRING>>",
        ),
        (pa.map_(pa.string(), pa.list_(pa.float64())), "MAP<STRING, ARRAY<DOUBLE>>"),
    ],
)
def test_a_type_that_does_not_fit_is_named_as_in_spark(wanted: pa.DataType, name: str) -> None:
    assert misfit("x", pa.int8(), wanted) == (
        f"column x has type int8, which does not fit {name} of the schema"
    )


@pytest.mark.parametrize(
    ("found", "wanted", "fits"),
    [
        (pa.int32(), pa.date32(), True),
        (pa.int64(), pa.date32(), False),
        (pa.int16(), pa.date32(), False),
        (pa.duration("us"), pa.duration("us"), True),
        (pa.duration("us"), pa.int64(), True),
        (pa.duration("us"), pa.int32(), False),
        (pa.duration("us"), pa.string(), False),
    ],
)
def test_days_and_durations_are_numbers_as_in_spark(
    found: pa.DataType, wanted: pa.DataType, fits: bool
) -> None:
    with nullcontext() if fits else pytest.raises(TypeError, match="does not fit"):
        check_fits("x", found, wanted)
