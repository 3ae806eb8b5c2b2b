"""What Spark has written.

The files of its file sink, and the offsets and commits of its checkpoint.

Two settings keep everything readable: `spark.sql.streaming.fileSink.log.compactInterval` and
`spark.sql.streaming.minBatchesToRetain`, both larger than the number of micro-batches.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import unquote, urlparse

import pyarrow.parquet as pq

from chaos.checker.broker_log import digest
from chaos.checker.sink import Attempt, Row

_COLUMNS: Final = ["cluster", "topic", "partition", "offset", "value"]
_STOP_ID: Final = "id"
"""Attribute of a split that holds the id of its topic."""

Split = tuple[str, str, int]


def checkpoints(folder: Path) -> dict[int, Path]:
    """Return the checkpoints of all hosts that a source has ever had: host → folder."""
    first = folder / "checkpoint"
    further = (first / "hosts").iterdir() if (first / "hosts").is_dir() else ()
    return {0: first} | {int(path.name): path for path in sorted(further) if path.name.isdigit()}


def sinks(folder: Path) -> dict[int, Path]:
    """Return the folders that hosts have written to: host → folder."""
    places = {
        host: folder / ("sink" if host == 0 else f"sink-host-{host}")
        for host in checkpoints(folder)
    }
    return {host: place for host, place in places.items() if (place / "_spark_metadata").exists()}


def attempts(sink: Path, host: int = 0) -> Iterator[Attempt[Row]]:
    """Read the committed files; a micro-batch has one attempt that counts, and a task per file."""
    log = sink / "_spark_metadata"
    entries = [entry for entry in log.iterdir() if entry.name.isdigit()] if log.is_dir() else []
    for entry in sorted(entries, key=lambda path: int(path.name)):
        tasks = tuple(_rows(sink / name) for name in added(entry))
        yield Attempt(int(entry.name), is_valid=True, tasks=tasks, host=host)


def events(checkpoint: Path, host: int = 0) -> list[dict[str, Any]]:
    """Return the micro-batches of a host's checkpoint as the light engine's driver notes them."""
    found: list[dict[str, Any]] = []
    before: dict[Split, Any] = {}
    for entry in _numbered(checkpoint / "offsets"):
        offset = _offset(entry)
        after = _table(offset["positions"])
        starts, attributes = _table(offset["starts"]), _table(offset["attributes"])
        ranges = [
            [
                *split,
                attributes.get(split, {}).get(_STOP_ID),
                starts.get(split, before.get(split)),
                end,
            ]
            for split, end in after.items()
        ]
        number, common = int(entry.name), {"batch": int(entry.name), "pid": host}
        at = entry.stat().st_mtime
        found.append(
            {**common, "event": "logged", "at": at, "epoch": offset["epoch"], "ranges": ranges}
        )
        commit = checkpoint / "commits" / str(number)
        if commit.exists():
            found.append({**common, "event": "committed", "at": max(at, commit.stat().st_mtime)})
        before = after
    return found


class Reached(NamedTuple):
    """How far a committed micro-batch reads: split → topic id and next offset."""

    at: float
    positions: dict[Split, tuple[str | None, int]]


def reached(checkpoint: Path, batch: int) -> Reached | None:
    """Return when a micro-batch was committed, and how far it reads.

    None if it is not committed.
    """
    commit = checkpoint / "commits" / str(batch)
    if not commit.exists():
        return None
    offset = _offset(checkpoint / "offsets" / str(batch))
    attributes = _table(offset["attributes"])
    positions = {
        s: (attributes.get(s, {}).get(_STOP_ID), end)
        for s, end in _table(offset["positions"]).items()
    }
    return Reached(commit.stat().st_mtime, positions)


def _offset(entry: Path) -> Any:
    return json.loads(entry.read_text().splitlines()[2])


def _numbered(folder: Path) -> list[Path]:
    entries = (
        [entry for entry in folder.iterdir() if entry.name.isdigit()] if folder.is_dir() else []
    )
    return sorted(entries, key=lambda path: int(path.name))


def added(entry: Path) -> Iterator[str]:
    """Yield the names of a micro-batch's files.

    The writer may have seen the folder elsewhere: only names count.
    """
    _version, *lines = entry.read_text().splitlines()
    for line in lines:
        action = json.loads(line)
        if action.get("action", "add") == "add":
            yield Path(unquote(urlparse(action["path"]).path)).name


def _rows(file: Path) -> tuple[Row, ...]:
    columns = pq.read_table(file, columns=_COLUMNS).to_pydict()
    cells = zip(*(columns[name] for name in _COLUMNS), strict=True)
    return tuple(
        Row(cluster, topic, partition, offset, digest(bytes(value)))
        for cluster, topic, partition, offset, value in cells
    )


def _table(rows: list[Any]) -> dict[Split, Any]:
    """Read a table of splits: prefix, runs of partition numbers, values.

    Equal objects are written once.
    """
    found: dict[Split, Any] = {}
    for (cluster, topic), lasts, values in rows:
        numbers = [
            n
            for item in lasts
            for n in (range(item[0], item[0] + item[1]) if isinstance(item, list) else [item])
        ]
        is_shared = len(values) == 1 and len(numbers) > 1 and isinstance(values[0], dict)
        for number, value in zip(
            numbers, values * len(numbers) if is_shared else values, strict=True
        ):
            found[cluster, topic, number] = value
    return found
