"""What a sink holds.

The valid attempt at each micro-batch, and complete attempts that were replaced by a replay.

sink/<batch>/<attempt>/task-<k>.csv     cluster,topic,partition,offset,digest in order of reading
sink/<batch>/<attempt>/complete         the attempt was whole
sink/<batch>/valid                      name of the attempt that counts
"""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple


class Row(NamedTuple):
    """A delivered record."""

    cluster: str
    topic: str
    partition: int
    offset: int
    digest: str


class Attempt(NamedTuple):
    """A whole attempt at a micro-batch of a host; rows per task, in the order of reading."""

    batch: int
    is_valid: bool
    tasks: tuple[tuple[Row, ...], ...]
    host: int = 0

    def rows(self) -> Iterator[Row]:
        """All rows."""
        for task in self.tasks:
            yield from task


def attempts(sink: Path) -> Iterator[Attempt]:
    """Read all whole attempts, by micro-batch."""
    folders = [path for path in sink.iterdir() if path.name.isdigit()] if sink.exists() else []
    for folder in sorted(folders, key=lambda path: int(path.name)):
        valid = (folder / "valid").read_text() if (folder / "valid").exists() else ""
        for attempt in sorted(folder.iterdir()):
            if (attempt / "complete").exists():
                yield Attempt(int(folder.name), attempt.name == valid, _tasks(attempt))


def _tasks(attempt: Path) -> tuple[tuple[Row, ...], ...]:
    return tuple(tuple(_rows(file)) for file in sorted(attempt.glob("task-*.csv")))


def _rows(file: Path) -> Iterator[Row]:
    with file.open(newline="") as text:
        for cluster, topic, partition, offset, hashed in csv.reader(text):
            yield Row(cluster, topic, int(partition), int(offset), hashed)
