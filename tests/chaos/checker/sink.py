"""What a sink holds.

The valid attempt at each micro-batch, and complete attempts that were replaced by a replay.

sink/<batch>/<attempt>/task-<k>.csv     cluster,topic,partition,offset,digest in order of reading
sink/<batch>/<attempt>/complete         the attempt was whole
sink/<batch>/valid                      name of the attempt that counts
"""

import csv
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

RowT = TypeVar("RowT")


class Row(NamedTuple):
    """A delivered record."""

    cluster: str
    topic: str
    partition: int
    offset: int
    digest: str


class Attempt(NamedTuple, Generic[RowT]):
    """A whole attempt at a micro-batch of a host; rows per task, in the order of reading."""

    batch: int
    is_valid: bool
    tasks: tuple[tuple[RowT, ...], ...]
    host: int = 0

    def rows(self) -> Iterator[RowT]:
        """All rows."""
        for task in self.tasks:
            yield from task


def attempts(sink: Path, parse: Callable[[list[str]], RowT]) -> Iterator[Attempt[RowT]]:
    """Read all whole attempts, by micro-batch.

    Args:
        sink: its folder.
        parse: makes a row of the cells of a line.
    """
    folders = [path for path in sink.iterdir() if path.name.isdigit()] if sink.exists() else []
    for folder in sorted(folders, key=lambda path: int(path.name)):
        valid = (folder / "valid").read_text() if (folder / "valid").exists() else ""
        for attempt in sorted(folder.iterdir()):
            if (attempt / "complete").exists():
                tasks = tuple(_rows(file, parse) for file in sorted(attempt.glob("task-*.csv")))
                yield Attempt(int(folder.name), attempt.name == valid, tasks)


def record(cells: list[str]) -> Row:
    """Make the row of a record of Kafka."""
    cluster, topic, partition, offset, hashed = cells
    return Row(cluster, topic, int(partition), int(offset), hashed)


def differing(found: Iterable[Attempt[RowT]]) -> list[int]:
    """Return the micro-batches whose attempts hold different rows."""
    seen: dict[int, set[frozenset[RowT]]] = {}
    for each in found:
        seen.setdefault(each.batch, set()).add(frozenset(each.rows()))
    return [batch for batch, contents in seen.items() if len(contents) > 1]


def _rows(file: Path, parse: Callable[[list[str]], RowT]) -> tuple[RowT, ...]:
    with file.open(newline="") as text:
        return tuple(map(parse, csv.reader(text)))
