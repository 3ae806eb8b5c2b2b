"""What a task yields of its ranges, and what it does when a file is not the one that was listed."""

import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import BinaryType, LongType, StringType, StructType
from structlog.testing import capture_logs

from balanced_source.connectors.files import File, FilesSource, Format, OnFileLoss
from balanced_source.host import SplitRange
from balanced_source_spark.contract.secrets import QuerySecrets
from balanced_source_spark.files import task_reader as module
from balanced_source_spark.files.options import file_read_options
from balanced_source_spark.files.task_reader import FileLostError, FilesTaskReader
from balanced_source_spark.partition import ReaderPartition

VALUE = StructType().add("value", StringType())


def piece(path: Path, start: int = 0, end: int | None = None) -> SplitRange:
    """Return a range of a file as it is now."""
    found = path.stat()
    return SplitRange(
        split_id=("files", str(path), start),
        start=start,
        end=found.st_size if end is None else end,
        identity=File(found.st_mtime_ns, str(path), found.st_size).identity,
    )


def rows(
    *ranges: SplitRange,
    kind: Format = Format.TEXT,
    schema: Any = VALUE,
    on_loss: OnFileLoss = OnFileLoss.FAIL,
) -> Iterator[Any]:
    source = FilesSource(paths=("/",), kind_of_file=kind, on_loss=on_loss, schema="value STRING")
    reader = FilesTaskReader(file_read_options({"fileformat": str(kind)}), schema, QuerySecrets())
    partition = ReaderPartition(
        subtask_id=0, ranges=ranges, settings=source.reader_settings(), samples=None
    )
    for batch in reader.read(partition):
        yield from batch.to_pylist()


@pytest.fixture(name="path")
def fixture_path(tmp_path: Path) -> Path:
    path = tmp_path / "a.txt"
    path.write_text("one\ntwo\n")
    return path


@pytest.fixture(name="told")
def fixture_told(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Ranges that tasks have passed over."""
    told: list[Any] = []
    monkeypatch.setattr(module, "tell_skipped", lambda _, ranges: told.extend(ranges))
    return told


def test_a_binary_file_is_one_row_of_the_task_that_reads_its_beginning(path: Path) -> None:
    schema = StructType().add("content", BinaryType()).add("_path", StringType())
    schema = schema.add("_block_offset", LongType()).add("_size", LongType())

    (row,) = rows(piece(path, 0, 4), piece(path, 4), kind=Format.BINARY, schema=schema)

    content = b"one\ntwo\n"
    assert row == {"content": content, "_path": str(path), "_block_offset": 0, "_size": 8}


def test_a_query_need_not_read_the_content_of_binary_files(path: Path) -> None:
    schema = StructType().add("_path", StringType())

    assert list(rows(piece(path), kind=Format.BINARY, schema=schema)) == [{"_path": str(path)}]


def test_a_file_that_was_lost_before_it_is_read_ends_the_task(path: Path) -> None:
    planned = piece(path)
    path.unlink()

    with pytest.raises(FileLostError, match=f"{path} was deleted, after it was listed"):
        list(rows(planned))


def test_a_file_that_changes_while_it_is_read_ends_the_task(path: Path, told: list[Any]) -> None:
    reading = rows(piece(path))
    assert next(reading) == {"value": "one"}
    os.utime(path, (1, 1))

    with pytest.raises(FileLostError, match=f"{path} was changed while it was read"):
        list(reading)
    assert told == []


def test_a_loss_that_is_accepted_is_said_and_told(path: Path, told: list[Any]) -> None:
    """The rows that were read before stay, and those of the next file follow."""
    other = path.with_name("b.txt")
    other.write_text("three\n")
    changing, whole = piece(path), piece(other)
    reading = rows(changing, whole, on_loss=OnFileLoss.SKIP)
    next(reading)
    os.utime(path, (1, 1))

    with capture_logs() as lines:
        assert list(reading) == [{"value": "two"}, {"value": "three"}]
        assert list(rows(changing, whole, on_loss=OnFileLoss.SKIP)) == [{"value": "three"}]

    assert told == [changing, changing]
    assert [(line["path"], line["why"]) for line in lines] == [
        (str(path), "was changed while it was read"),
        (str(path), "was changed"),
    ]


def test_a_file_that_is_cut_in_a_line_while_it_is_read_is_lost_and_not_damaged(
    path: Path, told: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    planned = piece(path)
    states = [File(path.stat().st_mtime_ns, str(path), size) for size in (8, 6)]
    store = SimpleNamespace(
        stat=lambda _: states.pop(0), open=lambda _: pa.BufferReader(b"one\ntw")
    )
    monkeypatch.setattr(FilesTaskReader, "_store", lambda *_: store)

    assert list(rows(planned, on_loss=OnFileLoss.SKIP)) == [{"value": "one"}]
    assert told == [planned]
