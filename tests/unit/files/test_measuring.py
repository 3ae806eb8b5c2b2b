"""The newest time of a file in milliseconds, whatever the type of its column is."""

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from balanced_source_adapters.files.measuring import _millis, _newest

NOON = dt.datetime(2026, 1, 1, 12, 0, 0, 500_999, dt.UTC)
MILLIS = 1_767_268_800_500


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        (None, pa.int64(), None),
        (MILLIS, pa.int64(), MILLIS),
        (0, pa.int64(), 0),
        (NOON, pa.timestamp("us", tz="UTC"), MILLIS),
        (NOON.replace(tzinfo=None), pa.timestamp("us"), MILLIS),
        (5, pa.timestamp("s"), 5000),
        (MILLIS, pa.timestamp("ms"), MILLIS),
        (MILLIS * 1000 + 999, pa.timestamp("us"), MILLIS),
        (MILLIS * 1_000_000 + 999_999, pa.timestamp("ns"), MILLIS),
    ],
)
def test_times_are_cut_to_milliseconds(value: Any, kind: pa.DataType, expected: int | None) -> None:
    """As Kafka's times are."""
    assert _millis(value, kind) == expected


@pytest.mark.parametrize("has_statistics", [True, False])
@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_the_newest_time_is_that_of_all_row_groups(
    tmp_path: Path, unit: str, *, has_statistics: bool
) -> None:
    """Some writers leave statistics out."""
    times = [NOON - dt.timedelta(seconds=n) for n in (5, 0, 9)] + [None]
    table = pa.table({"other": [9, 9, 9, 9], "at": pa.array(times, pa.timestamp("us", tz="UTC"))})
    table = table.set_column(1, "at", table["at"].cast(pa.timestamp(unit, tz="UTC"), safe=False))
    path = tmp_path / "a.parquet"
    pq.write_table(table, path, row_group_size=1, write_statistics=has_statistics)

    assert _newest(pq.ParquetFile(path), "at") == MILLIS


@pytest.mark.parametrize("has_statistics", [True, False])
def test_nanoseconds_are_cut(tmp_path: Path, *, has_statistics: bool) -> None:
    """Python's own times end at microseconds."""
    path = tmp_path / "a.parquet"
    times = pa.array([MILLIS * 1_000_000 + 456_789, None], pa.timestamp("ns"))
    pq.write_table(pa.table({"at": times}), path, write_statistics=has_statistics)

    assert _newest(pq.ParquetFile(path), "at") == MILLIS


@pytest.mark.parametrize("seconds", [1, MILLIS // 1000, 99_999_999_999])
@pytest.mark.parametrize("kind", [pa.int64(), pa.uint64()])
def test_seconds_are_no_milliseconds(tmp_path: Path, seconds: int, kind: pa.DataType) -> None:
    """The next part would start in 1970, and read the history once more."""
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"at": pa.array([None, seconds], kind)}), path)

    with pytest.raises(ValueError, match=f"{seconds} ms since the epoch, .* may be seconds"):
        _newest(pq.ParquetFile(path), "at")


def test_the_sign_for_no_time_is_no_time(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"at": [-1, -1]}), path)
    assert _newest(pq.ParquetFile(path), "at") is None

    pq.write_table(pa.table({"at": [-1, MILLIS]}), path)
    assert _newest(pq.ParquetFile(path), "at") == MILLIS


def test_a_file_without_rows_has_no_newest_time(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"at": pa.array([], pa.int64())}), path)

    assert _newest(pq.ParquetFile(path), "at") is None


def test_a_column_of_texts_is_no_time(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"at": ["noon"]}), path)

    with pytest.raises(TypeError, match=r"'?at'? is of type string, not a timestamp or a whole"):
        _newest(pq.ParquetFile(path), "at")
