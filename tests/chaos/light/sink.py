"""An idempotent sink.

Each attempt at a micro-batch has a folder, and one file per micro-batch names the valid one.

sink/<batch>/<attempt>/task-<k>.csv     cluster,topic,partition,offset,digest in order of reading
                                        path,block,digest for lines of files
                                        key,number for numbered records
sink/<batch>/<attempt>/complete         the attempt is whole
sink/<batch>/valid                      name of the attempt that counts, replaced atomically
"""

import csv
import hashlib
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

COLUMNS = ("cluster", "topic", "partition", "offset", "value")
"""What tasks read."""


def digest(value: bytes) -> str:
    """Return the digest of a record's payload, as the checker computes it."""
    return hashlib.sha256(value).hexdigest()[:20]


def new_attempt(sink: Path, batch: int) -> Path:
    """Make the folder of a new attempt at a micro-batch."""
    folder = sink / str(batch) / uuid.uuid4().hex[:12]
    folder.mkdir(parents=True)
    return folder


def write_rows(file: Path, batches: Iterator[pa.RecordBatch], *, drop_after: int | None) -> int:
    """Write what a task reads; returns the number of rows.

    Args:
        file: of this task; replaced by a further attempt of the task.
        batches: the task's generator.
        drop_after: rows after which the generator is closed and the task fails; None: never.

    Raises:
        RuntimeError: the task was dropped.
    """
    count = 0
    with file.open("w", newline="") as out:
        writer = csv.writer(out)
        for batch in batches:
            for row in batch.to_pylist():
                writer.writerow(_cells(row))
            count += batch.num_rows
            if drop_after is not None and count >= drop_after:
                raise RuntimeError(f"dropped after {count} rows, as asked for")
    return count


def make_valid(attempt: Path) -> None:
    """Let an attempt count; an earlier one of the same micro-batch counts no longer."""
    (attempt / "complete").touch()
    partial = attempt.parent / f".valid.{os.getpid()}"
    partial.write_text(attempt.name)
    partial.replace(attempt.parent / "valid")


def _cells(row: dict[str, Any]) -> list[Any]:
    if "_path" in row:  # of a file
        return [row["_path"], row["_block_offset"], digest(row["value"].encode())]
    if "partitionKey" in row:  # of a stream
        return [row["partitionKey"], int(row["data"])]
    if "cluster" not in row:  # of a topic that files have as well
        return [f"p{row['partition']}", int(row["value"])]
    return [
        row["cluster"],
        row["topic"],
        row["partition"],
        row["offset"],
        digest(bytes(row["value"])),
    ]
