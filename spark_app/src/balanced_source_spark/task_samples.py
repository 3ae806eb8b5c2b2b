"""How long a task waits for its source: measured in the task, sent to the planning process.

Python sources have no channel from tasks to planning. So a task sends one datagram at its end:
nothing waits for it, and a lost one costs a figure and nothing else. Imported by tasks, so it
imports little.
"""

import struct
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from balanced_source.host.cutting import length
from balanced_source.host.reader_figures import TaskSample
from balanced_source_adapters.heap import reuse_pages, share_one_heap
from balanced_source_spark.skipped_ranges import send
from balanced_source_spark.worker_memory import worker_memory

if TYPE_CHECKING:
    import pyarrow as pa

    from balanced_source_spark.contract.half import TaskReader
    from balanced_source_spark.partition import ReaderPartition

_LONGEST: Final = 1e9
"""Seconds that no task takes."""

_MOST: Final = 2**63 - 1
"""Largest whole number in a datagram."""

_NONE: Final = -1.0
"""Stands for no time."""

_NUMBERS: Final = struct.Struct("<4q3d")
"""Reader, extent, records and size; seconds in the source, downstream, and until the first records.
"""


@dataclass(frozen=True, slots=True)
class MeasuringReader:
    """Reads as another reader does, and says what it took.

    Attributes:
        reader: that reads.
    """

    reader: "TaskReader"

    def read(self, partition: "ReaderPartition") -> "Iterator[pa.RecordBatch]":
        """See `balanced_source_spark.contract.half.TaskReader`."""
        # Before any client has threads: each of them would keep the heap that it began with.
        share_one_heap()
        reuse_pages()
        batches = self.reader.read(partition)
        # A batch query has no one to tell.
        yield from batches if partition.samples is None else _measured(batches, partition)
        worker_memory.note_task()


def measuring(make: "Callable[[], TaskReader]") -> "TaskReader":
    """Return the reader that a factory makes, measured. Tasks unpickle a call of this."""
    return MeasuringReader(make())


def encoded(sample: TaskSample, token: str) -> bytes:
    """Return the datagram of a sample.

    Binary: planning takes one per task and micro-batch, and text costs several times as much.
    """
    first = _NONE if sample.first is None else sample.first
    # Positions have no largest value: of a longer range the figure is too small.
    numbers = [
        min(number, _MOST) for number in (sample.reader, sample.extent, sample.records, sample.size)
    ]
    return token.encode() + _NUMBERS.pack(*numbers, sample.source, sample.downstream, first)


def decoded(datagram: bytes, token: str) -> TaskSample | None:
    """Return the sample in a datagram; None for what no task of this query has sent."""
    prefix = token.encode()
    if len(datagram) != len(prefix) + _NUMBERS.size or not datagram.startswith(prefix):
        return None
    reader, extent, records, size, source, downstream, first = _NUMBERS.unpack_from(
        datagram, len(prefix)
    )
    # Not infinite and not NaN either: one would stay in the sums forever.
    is_fine = (
        min(reader, extent, records, size) >= 0
        and 0 <= source < _LONGEST
        and 0 <= downstream < _LONGEST
        and (0 <= first < _LONGEST or first == _NONE)
    )
    if not is_fine:
        return None
    return TaskSample(
        reader=reader,
        extent=extent,
        records=records,
        size=size,
        source=source,
        downstream=downstream,
        first=None if first == _NONE else first,
    )


def _measured(
    batches: "Iterator[pa.RecordBatch]", partition: "ReaderPartition"
) -> "Iterator[pa.RecordBatch]":
    source = downstream = 0.0
    first, records, size = None, 0, 0
    before = time.perf_counter()
    for batch in batches:
        now = time.perf_counter()
        source += now - before
        if first is None and batch.num_rows:
            first = source
        records += batch.num_rows
        size += batch.nbytes
        yield batch
        before = time.perf_counter()
        downstream += before - now
    source += time.perf_counter() - before
    # Only at the end: a task that fails has delivered nothing.
    _send(
        partition,
        TaskSample(
            reader=partition.subtask_id,
            extent=sum(map(length, partition.ranges)),
            records=records,
            size=size,
            source=source,
            downstream=downstream,
            first=first,
        ),
    )


def _send(partition: "ReaderPartition", sample: TaskSample) -> None:
    if (target := partition.samples) is not None:
        send(target, encoded(sample, target.token))
