"""A stream of one's own with an end: it ends if the program asks for that."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from balanced_source_spark import stop_when_finished
from testbed.waiting import wait_until

pytestmark = pytest.mark.integration


@pytest.fixture
def query(spark: SparkSession, tmp_path: Path) -> Iterator[StreamingQuery]:
    """Start a query that reads a folder to its end."""
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(3):
        (folder / f"{number}.txt").write_text(f"{number}\n")
    options = {"connector": "files", "fileFormat": "text", "path": str(folder), "parallelism": "2"}
    rows = spark.readStream.format("balanced").options(**options).load()
    started = (
        rows.writeStream.format("parquet")
        .option("path", str(tmp_path / "out"))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(processingTime="200 milliseconds")
        .start()
    )
    yield started
    started.stop()


def test_a_query_of_a_source_with_an_end_ends_when_it_is_asked_to(
    spark: SparkSession, query: StreamingQuery, tmp_path: Path
) -> None:
    stop_when_finished(query)

    assert query.awaitTermination(120)
    assert sorted(row.value for row in spark.read.parquet(str(tmp_path / "out")).collect()) == [
        "0",
        "1",
        "2",
    ]


def test_it_may_be_asked_late(query: StreamingQuery) -> None:
    """Its last micro-batch has ended before anyone listens."""

    def is_closed() -> bool:
        last = query.lastProgress
        return last is not None and '"finished"' in (last.sources[0].endOffset or "")

    wait_until(is_closed, 120, "the closing micro-batch")
    assert query.isActive, "Spark lets no source end a query"
    stop_when_finished(query)

    assert query.awaitTermination(60)
