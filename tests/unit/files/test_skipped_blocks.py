"""With `onLoss: Skip` each block that is not read counts, whoever notices that it is gone."""

import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql.types import StringType, StructField, StructType

from balanced_source.connectors.files import SKIPPED_BLOCKS, File, FilesSource, Format, OnFileLoss
from balanced_source.host import SplitRange
from balanced_source.host.ends import Mark
from balanced_source_spark.contract.secrets import QuerySecrets
from balanced_source_spark.files.hooks import FilesHooks
from balanced_source_spark.files.options import file_read_options
from balanced_source_spark.files.task_reader import FilesTaskReader
from balanced_source_spark.partition import ReaderPartition, SampleTarget
from balanced_source_spark.sample_collector import SampleCollector
from support.planner_context import CONTEXT

SCHEMA = StructType([StructField("value", StringType())])


@pytest.fixture
def collector() -> Iterator[SampleCollector]:
    made = SampleCollector({"SPARK_LOCAL_IP": "127.0.0.1"})
    yield made
    made.close()


def blocks(path: Path) -> tuple[SplitRange, ...]:
    """Return two blocks of a file as it is now."""
    found = path.stat()
    identity = File(found.st_mtime_ns, str(path), found.st_size).identity
    half = found.st_size // 2
    return tuple(
        SplitRange(
            split_id=("files", str(path), start), start=start, end=start + half, identity=identity
        )
        for start in (0, half)
    )


def rows(ranges: tuple[SplitRange, ...], target: SampleTarget | None) -> Iterator[Any]:
    source = FilesSource(
        paths=("/",), kind_of_file=Format.TEXT, on_loss=OnFileLoss.SKIP, schema="value STRING"
    )
    reader = FilesTaskReader(file_read_options({"fileformat": "text"}), SCHEMA, QuerySecrets())
    partition = ReaderPartition(
        subtask_id=0, ranges=ranges, settings=source.reader_settings(), samples=target
    )
    for batch in reader.read(partition):
        yield from batch.to_pylist()


def change(path: Path) -> None:
    path.write_text("another one\n")
    os.utime(path, (1, 1))


@pytest.mark.parametrize("lose", [Path.unlink, change], ids=["deleted", "changed"])
def test_a_task_tells_what_it_skips(
    tmp_path: Path, collector: SampleCollector, lose: Callable[[Path], None]
) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one\ntwo\n")
    planned = blocks(path)
    lose(path)

    assert list(rows(planned, collector.target)) == []
    assert [piece.split_id for piece in collector.skipped()] == [p.split_id for p in planned]
    assert list(rows(planned, None)) == [], "a batch query has no one to tell"


def test_a_block_counts_once(tmp_path: Path) -> None:
    hooks: Any = FilesHooks(CONTEXT)  # type: ignore[arg-type]
    path = tmp_path / "a.txt"
    path.write_text("one\ntwo\n")
    first, second = blocks(path)

    assert hooks.numbers() == {}
    hooks.note_skipped([first])
    hooks.note_skipped([first, second])
    assert hooks.numbers() == {SKIPPED_BLOCKS: 2}


class Bucket:
    """A store whose requests take long; it remembers how many ran side by side."""

    def __init__(self, files: int) -> None:
        self.asked: list[str] = []
        self.together = threading.Barrier(min(files, 8), timeout=60)

    def stat(self, path: str) -> File:
        self.asked.append(path)
        self.together.wait()
        return File(1, path, 100)


def test_looks_at_many_files_run_side_by_side_once_for_each() -> None:
    """A request to an object store takes ten milliseconds, and a backlog has thousands of files."""
    bucket, identity = Bucket(64), File(1, "", 100).identity
    settings = FilesSource(paths=("/",), kind_of_file=Format.TEXT).reader_settings()
    query: Any = replace(CONTEXT.query, read=file_read_options({"fileformat": "text"}))
    context: Any = replace(CONTEXT, query=query, known_settings=lambda: settings)
    hooks = FilesHooks(context)
    hooks._opened = lambda: bucket  # type: ignore[method-assign, assignment, return-value]
    marks = {
        ("files", f"/in/{number}", start): Mark(position=start, identity=identity)
        for number in range(64)
        for start in (0, 50)
    }

    for _ in range(2):
        assert hooks.ends("files", list(marks), marks).keys() == marks.keys()
    assert sorted(bucket.asked) == sorted(f"/in/{number}" for number in range(64))


def test_lost_blocks_that_are_not_held_any_more_are_forgotten() -> None:
    settings = FilesSource(paths=("/",), kind_of_file=Format.TEXT).reader_settings()
    query: Any = replace(CONTEXT.query, read=file_read_options({"fileformat": "text"}))
    hooks = FilesHooks(replace(CONTEXT, query=query, known_settings=lambda: settings))  # type: ignore[arg-type]
    store = SimpleNamespace(stat=lambda _: None)
    hooks._opened = lambda: store  # type: ignore[method-assign, assignment, return-value]
    for day in range(50):
        split_id = ("files", f"/in/{day}", 0)
        mark = Mark(position=0, identity=File(1, "", 100).identity)
        assert hooks.ends("files", [split_id], {split_id: mark}) == {}

    assert hooks._bad == {("files", "/in/49", 0): "was deleted"}
