"""Dates before 1582 that Spark has written by the Julian calendar are those that it has written."""

import datetime as dt
import io
from collections.abc import Callable
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from balanced_source_adapters.files import calendars
from balanced_source_spark.files import columnar

UTC = pa.timestamp("us", "UTC")
EPOCH = dt.date(1970, 1, 1)
SPARK_2, SPARK_3 = {"org.apache.spark.version": "2.4.8"}, {"org.apache.spark.version": "3.5.1"}
LEGACY = {**SPARK_3, "org.apache.spark.legacyDateTime": ""}
LEGACY_INT96 = {**SPARK_3, "org.apache.spark.legacyINT96": ""}

Rows = Callable[..., list[Any]]


def julian(year: int, month: int, day: int) -> int:
    """Return a date of the Julian calendar as days since 1970, by the formula of astronomers."""
    before = (14 - month) // 12
    years, months = year + 4800 - before, month + 12 * before - 3
    number = day + (153 * months + 2) // 5 + 365 * years + years // 4 - 32083
    return number - 2440588


def days(*dates: int) -> pa.Array:
    return pa.array(dates, pa.int32()).cast(pa.date32())


def parquet(column: pa.Array, wanted: pa.DataType, texts: dict[str, str], **how: Any) -> list[Any]:
    file = io.BytesIO()
    pq.write_table(pa.table({"x": column}).replace_schema_metadata(texts), file, **how)
    data = pa.BufferReader(file.getvalue())
    found = columnar.parquet(data, 0, data.size(), pa.schema([("x", wanted)]))
    return [row["x"] for part in found for row in part.to_pylist()]


def avro(column: pa.Array, wanted: pa.DataType, texts: dict[str, str]) -> list[Any]:
    kinds = {
        pa.date32(): {"type": "int", "logicalType": "date"},
        UTC: {"type": "long", "logicalType": "timestamp-micros"},
    }
    raw = column.cast(pa.int32() if column.type == pa.date32() else pa.int64()).to_pylist()
    field = {"name": "x", "type": kinds[column.type]}
    file = io.BytesIO()
    fastavro.writer(
        file,
        {"type": "record", "name": "row", "fields": [field]},
        [{"x": value} for value in raw],
        metadata=texts,
    )
    data = pa.BufferReader(file.getvalue())
    found = columnar.avro(data, 0, data.size(), data.size(), pa.schema([("x", wanted)]))
    return [row["x"] for part in found for row in part.to_pylist()]


@pytest.mark.parametrize("read", [parquet, avro])
@pytest.mark.parametrize("texts", [SPARK_2, LEGACY])
def test_each_date_is_the_one_that_was_written(read: Rows, texts: dict[str, str]) -> None:
    dates = [
        *(dt.date(year, month, day) for year in range(1, 1582) for month, day in ((2, 28), (3, 1))),
        *(dt.date(1, 1, 1), dt.date(1582, 10, 4)),
    ]
    modern = [dt.date(1582, 10, 15), dt.date(1600, 2, 29), EPOCH, dt.date(9999, 12, 31)]
    column = days(
        *(julian(each.year, each.month, each.day) for each in dates),
        *((each - EPOCH).days for each in modern),
    )

    assert read(column, pa.date32(), texts) == dates + modern


@pytest.mark.parametrize("read", [parquet, avro])
@pytest.mark.parametrize("texts", [SPARK_3, {}])
def test_dates_of_others_are_as_they_are(read: Rows, texts: dict[str, str]) -> None:
    dates = [dt.date(1, 1, 1), dt.date(1500, 3, 1)]

    assert read(pa.array(dates), pa.date32(), texts) == dates


def test_spark_writes_orc_by_the_julian_calendar_to_this_day(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = io.BytesIO()
    orc.write_table(pa.table({"x": days(julian(1, 1, 1), 0)}), file)
    data = pa.BufferReader(file.getvalue())

    def read() -> list[Any]:
        schema = pa.schema([("x", pa.date32())])
        found = columnar.orc(data, 0, data.size(), data.size(), schema)
        return [row["x"] for part in found for row in part.to_pylist()]

    with pytest.raises(OverflowError):  # two days before the first one that Python has
        read()
    texts = pa.KeyValueMetadata({"org.apache.spark.version": "4.2.0"})
    monkeypatch.setattr(orc.ORCFile, "metadata", texts)
    assert read() == [dt.date(1, 1, 1), EPOCH]


@pytest.mark.parametrize("read", [parquet, avro])
def test_times_of_an_unknown_zone_are_refused(read: Rows) -> None:
    old, new = (dt.datetime(year, 1, 1, tzinfo=dt.UTC) for year in (1899, 1900))

    assert read(pa.array([new], UTC), UTC, LEGACY) == [new]
    assert read(pa.array([old], UTC), UTC, SPARK_3) == [old]
    with pytest.raises(TypeError, match="column x has times before 1900 that Spark 2"):
        read(pa.array([old], UTC), UTC, LEGACY)


def test_times_of_96_bits_have_a_mode_of_their_own() -> None:
    old = dt.datetime(1899, 1, 1, tzinfo=dt.UTC)
    how = {"use_deprecated_int96_timestamps": True}

    assert parquet(pa.array([old], UTC), UTC, LEGACY, **how) == [old]
    for texts in (LEGACY_INT96, SPARK_2, {"org.apache.spark.version": "3.0.3"}):
        with pytest.raises(TypeError, match="column x has times before 1900"):
            parquet(pa.array([old], UTC), UTC, texts, **how)


def test_a_struct_may_have_other_values_beside_times_of_96_bits() -> None:
    kind = pa.struct([("at", UTC), ("n", pa.int64())])
    row = {"at": dt.datetime(2026, 1, 1, tzinfo=dt.UTC), "n": 1}
    how = {"use_deprecated_int96_timestamps": True}

    assert parquet(pa.array([row], kind), kind, LEGACY_INT96, **how) == [row]


def test_times_without_a_zone_are_as_they_are() -> None:
    local = dt.datetime(1500, 1, 1)  # noqa: DTZ001 - without a zone

    assert parquet(pa.array([local]), pa.timestamp("us"), LEGACY) == [local]


@pytest.mark.parametrize(
    "kind",
    [
        pa.struct([("a", pa.date32())]),
        pa.list_(pa.date32()),
        pa.map_(pa.string(), pa.date32()),
        pa.list_(pa.struct([("a", pa.date32())])),
    ],
)
def test_dates_within_others_are_refused(kind: pa.DataType) -> None:
    def column(day: dt.date) -> pa.Array:
        values = {"struct": {"a": day}, "list": [day], "map": [("k", day)]}
        is_inner = pa.types.is_list(kind) and pa.types.is_struct(kind.value_type)
        value = [{"a": day}] if is_inner else values[str(kind).partition("<")[0]]
        return pa.array([value, None], kind)

    assert len(parquet(column(dt.date(1600, 1, 1)), kind, LEGACY)) == 2
    with pytest.raises(TypeError, match="column x has dates before 15 October 1582, which Spark"):
        parquet(column(dt.date(1500, 1, 1)), kind, LEGACY)


def test_dates_before_the_year_1_are_refused() -> None:
    with pytest.raises(TypeError, match="column x has dates before the year 1"):
        parquet(days(julian(1, 1, 1) - 1), pa.date32(), LEGACY)


def test_days_are_moved_where_spark_moves_them() -> None:
    """The table of Spark's `RebaseDateTime`: first days since 1970, and their differences."""
    first = [-719164, -682945, -646420, -609895, -536845, -500320, -463795, -390745]
    first += [-354220, -317695, -244645, -208120, -171595]
    assert list(calendars._differences()) == list(zip(first, range(2, -11, -1), strict=True))


def test_a_column_without_old_dates_is_the_same_one() -> None:
    column = days(-141427, 0, 20000)
    assert calendars._dates("x", column) is column


def test_a_column_with_a_dictionary_is_one_array_of_values() -> None:
    column = pa.array(["a", "b", "a"]).dictionary_encode()

    assert list(calendars._parts(column)) == [column]
