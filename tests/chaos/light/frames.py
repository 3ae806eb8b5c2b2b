"""Tasks and answers between processes of a schedule: four bytes of length and a pickle."""

import contextlib
import pickle
import socket
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

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


class Channel:
    """One end of a stream socket that carries frames.

    Args:
        connection: closed by `close`.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._socket: Final = connection
        self._in, self._out = connection.makefile("rb"), connection.makefile("wb")

    def send(self, value: Any) -> None:
        """Write a frame.

        Raises:
            EOFError: the other side is gone.
        """
        body = pickle.dumps(value)
        try:
            self._out.write(_HEAD.pack(len(body)) + body)
            self._out.flush()
        except OSError as error:
            raise EOFError("the other side is gone") from error

    def receive(self) -> Any:
        """Read a frame.

        Raises:
            EOFError: the other side is gone.
        """
        (length,) = _HEAD.unpack(self._read(_HEAD.size))
        return pickle.loads(self._read(length))  # noqa: S301 - our own child or parent

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()
        for stream in (self._in, self._out):
            with contextlib.suppress(OSError):  # what was not sent is lost with the other side
                stream.close()

    def _read(self, length: int) -> bytes:
        try:
            found = self._in.read(length)
        except OSError as error:
            raise EOFError("the other side is gone") from error
        if len(found) < length:
            raise EOFError("the other side is gone")
        return found


def run(task: Task) -> Answer:
    """Run a task as Spark's worker does: unpickle the reader, read, consume."""
    try:
        # Our own parent
        reader, partition = pickle.loads(task.reader), pickle.loads(task.partition)  # noqa: S301
        rows = reader.read(partition)
        try:
            return Answer(rows=write_rows(task.file, rows, drop_after=task.drop_after))
        finally:
            rows.close()
    except Exception as error:  # noqa: BLE001 - whatever a task raises, the driver is told
        return Answer(error=f"{type(error).__name__}: {error}")
