"""Files that do not say where they end: nothing is guessed, and a replaced file is looked at."""

import datetime as dt
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from balanced_source.api import Measure
from balanced_source.connectors.files import File, FilesSource, page_of, position_of
from balanced_source.connectors.files import source as module
from balanced_source.connectors.pull import Page
from balanced_source.errors import TransientDiscoveryError
from balanced_source_adapters.files.connector import Lister
from balanced_source_spark.contract.secrets import NO_SECRETS
from unit.hybrid.test_files_and_kafka import MILLIS, OFFSETS, TIME, files


def rows(**columns: Any) -> pa.Table:
    return pa.table({"topic": ["orders"], "partition": [0], "offset": [9], **columns})


def listed(folder: Path, measure: Measure = OFFSETS) -> Page[Any]:
    source = files(str(folder)).measuring(measure, field="parts[1]")
    return Lister(NO_SECRETS)(source.list_page(1, None))


@pytest.mark.parametrize("column", ["topic", "partition", "offset"])
def test_a_record_that_does_not_say_where_it_is_in_kafka_is_named(
    tmp_path: Path, column: str
) -> None:
    """Its record could be read a second time."""
    known = rows()
    without = known.set_column(
        known.schema.get_field_index(column), column, pa.nulls(1, known.schema.field(column).type)
    )
    pq.write_table(pa.concat_tables([known, without]), tmp_path / "a.parquet")

    found = listed(tmp_path)

    assert f"a.parquet cannot be measured: column '{column}' has no value in 1 record. Cor" in (
        found.refusal
    )
    assert found.splits == ()


def test_files_without_any_time_are_named(tmp_path: Path) -> None:
    """Nothing would be left out of the next part, as if there were no history."""
    nothing = pa.table({"at": pa.nulls(2, pa.timestamp("us"))})
    pq.write_table(nothing.slice(0, 0), tmp_path / "a.parquet")
    assert listed(tmp_path, TIME).refusal == ""

    pq.write_table(nothing, tmp_path / "b.parquet")
    assert "b.parquet cannot be measured: column 'at' has no value in any record" in (
        listed(tmp_path, TIME).refusal
    )

    pq.write_table(pa.table({"at": [MILLIS]}), tmp_path / "c.parquet")
    assert position_of(listed(tmp_path, TIME).cursor).time == MILLIS


@pytest.mark.parametrize("measure", [OFFSETS, TIME], ids=["offsets", "time"])
@pytest.mark.parametrize(
    "nothing",
    [
        {"topic": pa.nulls(0), "partition": pa.nulls(0), "offset": pa.nulls(0), "at": pa.nulls(0)},
        {"topic": pa.array([], pa.string()), "offset": pa.array([], pa.float64())},
        {"another": pa.nulls(0)},
    ],
    ids=["no types", "other types", "other columns"],
)
def test_a_file_without_records_says_nothing(
    tmp_path: Path, measure: Measure, nothing: dict[str, pa.Array]
) -> None:
    """Writers that take types from values, such as pandas, know none for an hour without any."""
    pq.write_table(pa.table(nothing), tmp_path / "a.parquet")
    pq.write_table(rows(at=[MILLIS]), tmp_path / "b.parquet")

    found = listed(tmp_path, measure)

    assert found.refusal == ""
    position = position_of(found.cursor)
    assert position.offsets == ({("orders", 0): 10} if measure is OFFSETS else {})
    assert position.time == (MILLIS if measure is TIME else None)


@pytest.mark.parametrize(
    "time",
    [
        pa.array([dt.datetime(9999, 12, 31, tzinfo=dt.UTC)], pa.timestamp("us", tz="UTC")),
        pa.array([MILLIS * 1000], pa.int64()),
        pa.array([2**62], pa.timestamp("us")),
    ],
    ids=["stands for no end", "microseconds", "beyond all years"],
)
def test_a_time_in_the_future_is_named(tmp_path: Path, time: pa.Array) -> None:
    """Nothing of the next part would be read, because nothing in it is so new."""
    pq.write_table(pa.table({"at": time}), tmp_path / "a.parquet")

    assert "a.parquet cannot be measured: " in listed(tmp_path, TIME).refusal


def test_a_clock_may_be_ahead(tmp_path: Path) -> None:
    soon = dt.datetime.now(dt.UTC) + dt.timedelta(hours=1)
    pq.write_table(pa.table({"at": [soon]}), tmp_path / "a.parquet")

    assert position_of(listed(tmp_path, TIME).cursor).time == int(soon.timestamp() * 1000)


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    """Arrow says so with the error of a store that does not answer, which names no file."""
    path = tmp_path / "a.parquet"
    pq.write_table(rows(), path, compression="none")
    content = bytearray(path.read_bytes())
    content[4:60] = b"\xff" * 56
    path.write_bytes(content)

    with pytest.raises(TransientDiscoveryError, match=r"cannot read .*a\.parquet, to measure"):
        listed(tmp_path)


class Pages:
    """Five files, which are listed one by one, and the cursor that an enumerator keeps."""

    def __init__(self, folder: Path) -> None:
        self.paths = [folder / f"{number}.parquet" for number in range(5)]
        for number, path in enumerate(self.paths):
            pq.write_table(rows(offset=[number]), path)
            os.utime(path, (number, number))
        self.source: FilesSource = files(str(folder)).measuring(OFFSETS, field="parts[1]")
        self.lister, self.cursor = Lister(NO_SECRETS), None

    def next(self) -> Page[Any]:
        page = self.lister(self.source.list_page(1, self.cursor))
        self.cursor = page.cursor
        return page

    def rest(self) -> list[str]:
        """Return the names of all files that are still to come."""
        page, names = self.next(), list[str]()
        while page.splits:
            assert not page.refusal
            names += [Path(str(split.split_id[1])).name for split in page.splits]
            page = self.next()
        return names


def test_reading_begins_before_all_files_are_measured() -> None:
    """A query that ends by itself waits for the first page, and a driver may die meanwhile."""
    known = [File(number, f"/in/{number:05}", 9) for number in range(module.PAGE)]
    call = files().measuring(OFFSETS, field="parts[1]").list_page(1, None)

    page = page_of(call, known).page

    assert len(page.splits) == module.MEASURED_PAGE
    assert page.has_more
    assert len(page_of(files().list_page(1, None), known).page.splits) == module.PAGE


@pytest.fixture
def pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pages:
    monkeypatch.setattr(module, "PAGE", 1)
    return Pages(tmp_path)


def test_files_are_listed_again_when_one_cannot_be_measured(pages: Pages) -> None:
    """A long listing is kept for the next pages, but not with a file that has to be replaced."""
    times = pages.paths[0].stat()
    pages.paths[0].write_text("damaged")
    os.utime(pages.paths[0], (times.st_atime, times.st_mtime))
    assert "0.parquet" in pages.next().refusal

    pages.paths[0].unlink()

    assert pages.rest() == [f"{number}.parquet" for number in (1, 2, 3, 4)]


def test_files_are_listed_again_when_one_vanishes_before_it_is_measured(pages: Pages) -> None:
    assert pages.next().splits
    pages.paths[1].unlink()

    with pytest.raises(TransientDiscoveryError, match=r"cannot read .*/1\.parquet"):
        pages.next()

    assert pages.rest() == [f"{number}.parquet" for number in (2, 3, 4)]
