"""Halves whose tasks get ranges keep the contract: files of lines, and a table of columns."""

from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, ClassVar

import fastavro
import pyarrow as pa
import pytest
from pyarrow import parquet
from pyspark.sql.types import LongType, StringType, StructType

from balanced_source.connectors.files import File, FilesSource, Format
from balanced_source.host import SplitRange
from balanced_source.testing.planner_hooks import HooksContext
from balanced_source.testing.ranges_half import RangesHalfContract, Row
from balanced_source_spark.contract.half import Query
from balanced_source_spark.contract.hooks import PlannerContext
from balanced_source_spark.files.half import FilesSparkHalf
from balanced_source_spark.files.options import FileReadOptions
from balanced_source_spark.partition import ReaderPartition


class FilesContract(RangesHalfContract):
    """Two files in a folder of the test."""

    has_stops = True
    folder: Path
    kind_of_file: Format
    options: ClassVar[dict[str, str]]
    schema: ClassVar[StructType]

    @pytest.fixture(autouse=True)
    def _written(self, tmp_path: Path) -> None:
        type(self).folder = tmp_path
        self.write(tmp_path)

    def write(self, folder: Path) -> None:
        raise NotImplementedError

    def half(self) -> FilesSparkHalf:
        return FilesSparkHalf()

    def query(self) -> Query[FileReadOptions]:
        raw = {"fileformat": self.kind_of_file.value, "metadatacolumns": "false", **self.options}
        read = self.half().read_options(raw)
        return Query(client_id="contract", read=read, schema=self.schema)

    def partition(self, ranges: tuple[SplitRange, ...]) -> ReaderPartition:
        source = FilesSource(paths=(str(self.folder),), kind_of_file=self.kind_of_file)
        return ReaderPartition(subtask_id=0, ranges=ranges, settings=source.reader_settings())

    def ranges(self) -> Sequence[SplitRange]:
        return [self.whole(path) for path in sorted(self.folder.iterdir())]

    def whole(self, path: Path) -> SplitRange:
        found = path.stat()
        file = File(found.st_mtime_ns, str(path), found.st_size)
        return SplitRange(
            split_id=("files", str(path), 0), start=0, end=file.size, identity=file.identity
        )


class TestText(FilesContract):
    kind_of_file = Format.TEXT
    options: ClassVar[dict[str, str]] = {}
    schema = StructType().add("value", StringType())

    def write(self, folder: Path) -> None:
        (folder / "a.txt").write_bytes(b"one\ntwo\n\nfour\n")
        (folder / "b.txt").write_bytes("fünf\r\nsechs".encode())

    def rows(self, whole: SplitRange) -> Sequence[Row]:
        lines = {"a.txt": ["one", "two", "", "four"], "b.txt": ["fünf", "sechs"]}
        return [{"value": line} for line in lines[Path(str(whole.split_id[1])).name]]


class TestJson(FilesContract):
    kind_of_file = Format.JSON
    options: ClassVar[dict[str, str]] = {"schema": "id BIGINT"}
    schema = StructType().add("id", LongType())

    def write(self, folder: Path) -> None:
        for name, first in (("a.json", 1), ("b.json", 10)):
            lines = [f'{{"id": {number}}}\n' for number in range(first, first + 3)]
            (folder / name).write_text("".join(lines))

    def rows(self, whole: SplitRange) -> Sequence[Row]:
        first = 1 if str(whole.split_id[1]).endswith("a.json") else 10
        return tuple({"id": number} for number in range(first, first + 3))


class TestParquet(FilesContract):
    kind_of_file = Format.PARQUET
    options: ClassVar[dict[str, str]] = {"schema": "id BIGINT"}
    schema = StructType().add("id", LongType())

    def write(self, folder: Path) -> None:
        for name, first in (("a.parquet", 1), ("b.parquet", 10)):
            table = pa.table({"id": pa.array(range(first, first + 6), pa.int64())})
            parquet.write_table(table, folder / name, row_group_size=2)

    def rows(self, whole: SplitRange) -> Sequence[Row]:
        first = 1 if str(whole.split_id[1]).endswith("a.parquet") else 10
        return [{"id": number} for number in range(first, first + 6)]

    def cuts(self, whole: SplitRange) -> Sequence[int]:
        return range(1, int(whole.end or 0), 37)


class TestAvro(FilesContract):
    kind_of_file = Format.AVRO
    options: ClassVar[dict[str, str]] = {"schema": "id BIGINT"}
    schema = StructType().add("id", LongType())

    def write(self, folder: Path) -> None:
        fields = [{"name": "id", "type": "long"}, {"name": "other", "type": "string"}]
        written = {"type": "record", "name": "row", "fields": fields}
        for name, first in (("a.avro", 1), ("b.avro", 10)):
            records = [{"id": number, "other": "x" * number} for number in range(first, first + 6)]
            with (folder / name).open("wb") as file:
                fastavro.writer(file, written, records, sync_interval=4)

    def rows(self, whole: SplitRange) -> Sequence[Row]:
        first = 1 if str(whole.split_id[1]).endswith("a.avro") else 10
        return [{"id": number} for number in range(first, first + 6)]

    def cuts(self, whole: SplitRange) -> Sequence[int]:
        return range(1, int(whole.end or 0), 37)


class TwiceHalf(FilesSparkHalf):
    """Reads each range twice."""

    def task_reader(self, query: Query[FileReadOptions]) -> Any:
        made = super().task_reader(query)

        class Reader:
            def read(self, partition: ReaderPartition) -> Iterator[pa.RecordBatch]:
                for _ in range(2):
                    yield from made().read(partition)

        return Reader


class GuessingHalf(FilesSparkHalf):
    """Lets Arrow guess the types of each range's columns from its values."""

    def task_reader(self, query: Query[FileReadOptions]) -> Any:
        made = super().task_reader(query)

        class Reader:
            def read(self, partition: ReaderPartition) -> Iterator[pa.RecordBatch]:
                rows = [row for batch in made().read(partition) for row in batch.to_pylist()]
                yield pa.RecordBatch.from_pydict({"value": [row["value"] for row in rows]})

        return Reader


@pytest.fixture
def suite(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> TestText:
    """The suite of text files, to be run by a test."""
    monkeypatch.setattr(TestText, "folder", tmp_path, raising=False)
    made = TestText()
    made.write(tmp_path)
    return made


def test_the_suite_finds_a_half_that_reads_a_range_twice(
    monkeypatch: pytest.MonkeyPatch, suite: TestText
) -> None:
    monkeypatch.setattr(suite, "half", TwiceHalf)

    with pytest.raises(AssertionError):
        suite.test_every_record_of_a_range_comes_once_in_its_order()


def test_the_suite_finds_a_half_whose_empty_ranges_have_other_types(
    monkeypatch: pytest.MonkeyPatch, suite: TestText
) -> None:
    monkeypatch.setattr(suite, "half", GuessingHalf)

    with pytest.raises(AssertionError, match="same names, order and types"):
        suite.test_all_batches_have_the_same_columns()


def test_the_suite_finds_hooks_that_hold_a_split_back(
    monkeypatch: pytest.MonkeyPatch, suite: TestText
) -> None:
    hooks = suite.hooks()
    monkeypatch.setattr(hooks, "admit", lambda held, _, **__: held)
    monkeypatch.setattr(suite, "hooks", lambda: hooks)

    with pytest.raises(AssertionError):
        suite.test_a_micro_batch_ends_between_what_is_held_and_what_is_reachable()


def test_the_stand_in_has_what_hooks_may_use() -> None:
    assert {f.name for f in fields(HooksContext)} == {f.name for f in fields(PlannerContext)}
