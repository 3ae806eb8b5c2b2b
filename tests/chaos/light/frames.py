"""Tasks and answers between a driver and its worker processes, as frames of four bytes of length and a pickle."""

import pickle
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from chaos.light.sink import write_rows

_HEAD = struct.Struct(">I")


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A task of a micro-batch.

    Attributes:
        reader: the pickled stream reader, as Spark sends it.
        partition: the pickled input partition.
        file: gets the rows.
        drop_after: see `write_rows`.
    """

    reader: bytes
    partition: bytes
    file: Path
    drop_after: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What became of a task: rows, or why it failed."""

    rows: int = 0
    error: str | None = None


def send(stream: IO[bytes], value: Any) -> None:
    """Write a frame."""
    body = pickle.dumps(value)
    stream.write(_HEAD.pack(len(body)) + body)
    stream.flush()


def receive(stream: IO[bytes]) -> Any:
    """Read a frame.

    Raises:
        EOFError: the other side is gone.
    """
    head = stream.read(_HEAD.size)
    if len(head) < _HEAD.size:
        raise EOFError("the other side is gone")
    (length,) = _HEAD.unpack(head)
    body = stream.read(length)
    if len(body) < length:
        raise EOFError("the other side is gone")
    return pickle.loads(body)  # noqa: S301 - our own child or parent


def run(task: Task) -> Answer:
    """Run a task as Spark's worker does: unpickle the reader, read, consume."""
    try:
        reader, partition = pickle.loads(task.reader), pickle.loads(task.partition)  # noqa: S301 - our own parent
        rows = reader.read(partition)
        try:
            return Answer(rows=write_rows(task.file, rows, drop_after=task.drop_after))
        finally:
            rows.close()
    except Exception as error:  # noqa: BLE001 - whatever a task raises, the driver is told
        return Answer(error=f"{type(error).__name__}: {error}")
