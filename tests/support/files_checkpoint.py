"""A query of files that is started again and again, as Spark calls it, without its JVM."""

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark.sql.types import StringType, StructType

from balanced_source_spark.options import parse_options
from balanced_source_spark.partition import ReaderPartition
from balanced_source_spark.planner import StreamPlanner
from balanced_source_spark.stream_reader import UNLIMITED, task_reader

SCHEMA = StructType().add("value", StringType())


class Checkpoint:
    """A folder of files, and a query over it; each run is a new driver with the same checkpoint."""

    def __init__(self, folder: Path) -> None:
        self.files = folder / "in"
        self.files.mkdir()
        self.lines: Counter[str] = Counter()
        self.offsets: list[dict[str, Any]] = []

    def write(self, name: str, lines: list[str], *, at: int) -> None:
        path = self.files / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(f"{line}\n" for line in lines))
        os.utime(path, (at, at))

    def run(self, **given: str) -> None:
        """Read what there is, as AvailableNow does."""
        text = {"connector": "files", "path": str(self.files), "metadataColumns": "false"}
        if "connector" in given:
            text = {}
        options = parse_options({**text, "startTimeoutSeconds": "1", **given}, schema=SCHEMA)
        planner = StreamPlanner(options)
        try:
            planner.prepareForTriggerAvailableNow()
            for parts in self._planned(planner):
                for part in parts:
                    for batch in task_reader(options)().read(part):
                        self.lines.update(batch.column("value").to_pylist())
        finally:
            planner.stop()

    def _planned(self, planner: StreamPlanner) -> Iterator[list[ReaderPartition]]:
        while True:
            start = self.offsets[-1] if self.offsets else planner.initialOffset()
            end = planner.latestOffset(start, UNLIMITED)
            if end == start:
                return
            self.offsets.append(end)
            yield [part for part in planner.partitions(start, end) if part is not None]
