"""What a task has fetched and may not emit yet.

Rows in memory, and in a temporary file beyond that.
"""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from copy import Error as CopyError
from pickle import PickleError
from typing import IO, Any, Final, Generic, TypeVar

import pyarrow as pa

from balanced_source.errors import ContractViolationError
from balanced_source.names import counted
from balanced_source.reader import kept
from balanced_source_spark.contract.row_columns import Columns, RowColumns, Schema

T = TypeVar("T")

CHUNK: Final = 1000
"""Records of one Arrow batch at most."""

CHUNK_BYTES: Final = 4 * 1024 * 1024
"""Bytes after which an Arrow batch is full.

The size of some records shows only when they have become rows. So the first batches are small, and
later ones are as large as the rows before them allow.
"""

IN_MEMORY: Final = 32 * 1024 * 1024
"""Bytes of rows that stay in memory."""


class Buffer(Generic[T]):
    """Rows in their order.

    Args:
        rows: turns records into rows.
        declared: columns of the query; None if they are unknown.
        schema: see `RowColumns`.
        in_memory: see `IN_MEMORY`.
    """

    def __init__(
        self,
        rows: Callable[[Sequence[T]], pa.RecordBatch],
        declared: "Columns" = None,
        *,
        schema: "Schema | None" = None,
        in_memory: int = IN_MEMORY,
    ) -> None:
        self._rows = rows
        self._columns = RowColumns(declared, "rows of the connector's Spark half", schema)
        self._limit = in_memory
        self._records: list[T] = []
        self._batches: list[pa.RecordBatch] = []
        self._held = 0
        self._chunk = 1
        self._weight = 0
        self._file: IO[bytes] | None = None
        self._writer: Any = None
        self.count = 0
        self.bytes = 0

    def add(self, record: T, _timestamp: int | None = None) -> None:
        """Append a record. The reader may change it afterwards, see `SourceOutput.collect`."""
        chunk = self._chunk
        # Only for other types: a call per record costs time.
        if type(record) is not tuple:
            try:
                record = kept(record)
            except (TypeError, ValueError, NotImplementedError, PickleError, CopyError):
                chunk = 1  # it cannot be copied, so its row is made before it may change
        self._records.append(record)
        self._weight += _size(record)
        self.count += 1
        if len(self._records) >= chunk or self._weight >= CHUNK_BYTES:
            self.convert()

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Return all rows, once."""
        self.convert()
        if self._file is not None:
            self._writer.close()
            self._file.seek(0)
            yield from pa.ipc.open_stream(self._file)
        yield from self._batches

    def close(self) -> None:
        """Free memory and disk."""
        self._batches.clear()
        self._records.clear()
        if self._file is not None:
            self._file.close()

    def convert(self) -> None:
        """Turn the records so far into rows. What is wrong with them shows now."""
        if not self._records:
            return
        batch = self._checked(self._rows(self._records))
        # By the rows before: the size of a record shows only when it has become one.
        self._chunk = max(
            1, min(2 * self._chunk, CHUNK, CHUNK_BYTES * batch.num_rows // max(1, batch.nbytes))
        )
        self._records, self._weight = [], 0
        self.bytes += batch.nbytes
        self._held += batch.nbytes
        self._batches.append(batch)
        # A task may be killed for its memory, and its rows wait here until they are sealed.
        if self._held > self._limit:
            self._spill()

    def _checked(self, batch: object) -> pa.RecordBatch:
        """Return the rows of the records, if that is what the connector made."""
        if not isinstance(batch, pa.RecordBatch):
            raise ContractViolationError(
                f"rows of the connector's Spark half returned a {type(batch).__name__}: return a"
                " pyarrow.RecordBatch"
            )
        if batch.num_rows != len(self._records):
            raise ContractViolationError(
                f"rows of the connector's Spark half returned {counted(batch.num_rows, 'row')}"
                f" for {counted(len(self._records), 'record')}: return one row per record."
                " Leave out a record, or split it up, in the reader"
            )
        self._columns.check(batch)
        return batch

    def _spill(self) -> None:
        if self._file is None:
            # See close
            self._file = tempfile.TemporaryFile(prefix="balanced-source-")  # noqa: SIM115
            self._writer = pa.ipc.new_stream(self._file, self._batches[0].schema)
        for batch in self._batches:
            self._writer.write_batch(batch)
        self._batches.clear()
        self._held = 0


def _size(record: object) -> int:
    """Return the bytes of the texts in a record, as far as that is cheap to tell."""
    match record:
        case bytes() | str():
            return len(record)
        case tuple():
            return sum(len(part) for part in record if isinstance(part, bytes | str))
        case dict():
            return sum(len(part) for part in record.values() if isinstance(part, bytes | str))
        case _:
            return 0
