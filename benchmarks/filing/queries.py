"""Queries of one Spark session: a folder read to its end, or watched while files appear."""

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from benchmarks.filing.folders import schema
from benchmarks.reading.session import Backlog, read_to_end

READERS: Final = 2
AHEAD: Final = 1000
"""`lookAhead` of our source: files of 10 KB are too small for the default of 2."""

LOOK: Final = "1s"
"""`discoveryInterval` of our source."""

DEADLINE: Final = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Contestant:
    """Who reads a folder.

    Attributes:
        name: in results.
        options: of the source; empty: Spark's own file stream source with its defaults.
    """

    name: str
    options: dict[str, str] = field(default_factory=dict)

    def rows(self, spark: SparkSession, folder: Path, kind: str, **more: str) -> DataFrame:
        """Return the stream of a folder.

        Args:
            spark: session.
            folder: to read.
            kind: format of its files.
            more: further options of our source.
        """
        if not self.options:
            return spark.readStream.schema(schema(kind)).format(kind).load(str(folder))
        given = {**self.options, "fileFormat": kind, "schema": schema(kind), **more}
        return spark.readStream.format("balanced").options(**given).load(str(folder))


OURS: Final = Contestant(
    name="ours",
    options={
        "connector": "files",
        "parallelism": str(READERS),
        "lookAhead": str(AHEAD),
        "metadataColumns": "false",
        "startTimeoutSeconds": "120",
    },
)
SPARK: Final = Contestant(name="spark")
CONTESTANTS: Final = (OURS, SPARK)


def read_backlog(spark: SparkSession, who: Contestant, folder: Path, kind: str) -> Backlog:
    """Read all files of a folder into nothing, with trigger `AvailableNow`.

    Ours remembers files in a folder, as its documentation advises for many: otherwise each offset
    names all of them.
    """
    with tempfile.TemporaryDirectory() as state:
        more = {"stateDir": state} if who.options else {}
        return read_to_end(lambda: who.rows(spark, folder, kind, **more))


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """A micro-batch that had rows: how many, and milliseconds by step."""

    rows: int
    took: dict[str, int]


class Watch:
    """A running query over a growing folder, and how many rows it has committed.

    Args:
        query: with one row per file.
        rows: that earlier runs of it have committed.
    """

    def __init__(self, query: StreamingQuery, rows: int) -> None:
        self._query, self._rows, self._seen = query, rows, 0
        self._batches: list[Batch] = []

    @property
    def rows(self) -> int:
        """Rows that are committed in all runs."""
        self._look()
        return self._rows

    @property
    def batches(self) -> list[Batch]:
        """The micro-batches of this run that had rows."""
        self._look()
        return list(self._batches)

    def _look(self) -> None:
        # PySpark's own `recentProgress` copies all of it as JSON, with the offsets of thousands of
        # files: the watching would take the processor from what is watched.
        found = self._query._jsq.recentProgress()  # noqa: SLF001 - the only way
        for progress in found[self._seen :]:
            self._seen += 1
            if rows := progress.numInputRows():
                self._rows += rows
                self._batches.append(Batch(rows=rows, took=dict(progress.durationMs())))

    def wait_rows(self, rows: int) -> None:
        """Wait until as many rows are committed.

        Raises:
            RuntimeError: the query failed, or takes too long.
        """
        deadline = time.monotonic() + DEADLINE
        while self.rows < rows:
            if (error := self._query.exception()) is not None:
                raise RuntimeError(str(error))
            if time.monotonic() > deadline:
                raise RuntimeError(f"{self.rows} of {rows} rows after {DEADLINE} s")
            time.sleep(0.02)


@contextmanager
def watching(
    spark: SparkSession, who: Contestant, folder: Path, home: Path, *, rows: int
) -> Iterator[Watch]:
    """Continue the query of a contestant over a folder of text files, with the default trigger.

    Args:
        spark: session.
        who: reads.
        folder: of files of one line.
        home: keeps checkpoint and state between runs.
        rows: see `Watch`.
    """
    more = {"discoveryInterval": LOOK, "stateDir": str(home / "state")}
    query = (
        who.rows(spark, folder, "text", **more)
        .writeStream.format("noop")
        .option("checkpointLocation", str(home / "checkpoint"))
        .start()
    )
    try:
        yield Watch(query, rows)
    finally:
        query.stop()
