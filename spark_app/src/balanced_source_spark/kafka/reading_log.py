"""What a reader has read and how long it waited, in the executor's log.

It goes nowhere else: tasks run in processes that the planning process never hears of, and Spark
gives a Python data source no way back from a task (no accumulator, no metric of its own) but its
rows.
"""

import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, nullcontext
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from balanced_source_spark.task_log import TELL_EVERY, tell


@dataclass(slots=True)
class _Sums:
    logged_at: float
    micro_batches: int = 0
    rows: int = 0
    bytes: int = 0
    waited: float = 0.0
    first_rows: float = 0.0


class ReadingLog:
    """Of one process. Used by one thread per reader.

    Args:
        tell: gets level, text, and the figures of a reader as keywords.
        clock: seconds, monotonic.
    """

    def __init__(
        self, tell: Callable[..., Any] = tell, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self._tell = tell
        self._clock = clock
        self._sums: dict[tuple[str, int], _Sums] = {}

    def measured(
        self, batches: Iterator[pa.RecordBatch], *, cluster: str, reader: int
    ) -> Iterator[pa.RecordBatch]:
        """The same record batches; counts them, and the time until each was there.

        Figures of a line, since the line before: `micro_batches`, `rows`, `bytes` (of the Arrow
        columns), `waited` (seconds in which the task had nothing to hand on) and `first_rows` (the
        longest that a micro-batch waited for its first rows: the fetch latency that a query sees).
        """
        began = self._clock()
        sums = self._sums.setdefault((cluster, reader), _Sums(began))
        is_first = True
        with closing(batches) if isinstance(batches, Generator) else nullcontext():
            while True:
                before = self._clock()
                batch = next(batches, None)
                sums.waited += self._clock() - before
                if batch is None:
                    break
                if is_first:
                    sums.first_rows, is_first = max(sums.first_rows, self._clock() - began), False
                sums.rows += batch.num_rows
                sums.bytes += batch.nbytes
                yield batch
        sums.micro_batches += 1
        self._say(cluster, reader, sums)

    def _say(self, cluster: str, reader: int, sums: _Sums) -> None:
        now = self._clock()
        if now - sums.logged_at < TELL_EVERY:
            return
        self._sums[cluster, reader] = _Sums(now)
        self._tell(
            "info",
            "reader",
            cluster=cluster,
            reader=reader,
            micro_batches=sums.micro_batches,
            rows=sums.rows,
            bytes=sums.bytes,
            waited=round(sums.waited, 3),
            first_rows=round(sums.first_rows, 3),
        )
