"""``spark.read.format("balanced")``: everything between the start and the stop offsets, once.

It plans like a new stream that reads all available records. The driver enumerates the splits
itself: a batch query is no reader host of a source that an operator runs, and must not take the
place of its driver.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable

from balanced_source.documents import stream_offset
from balanced_source.errors import InvalidSpecError
from balanced_source_spark.options import Options
from balanced_source_spark.partition import ReaderPartition
from balanced_source_spark.plain_errors import plain_errors
from balanced_source_spark.short_splits import tell_short
from balanced_source_spark.stream_reader import UNLIMITED, check_tasks, planner_of, task_reader

if TYPE_CHECKING:
    from balanced_source_spark.planner import StreamPlanner


class BalancedBatchReader(DataSourceReader):
    """See the module.

    Raises:
        InvalidSpecError: the options name a source that is assigned elsewhere.
    """

    def __init__(self, options: Options) -> None:
        if options.embedded is None:
            raise InvalidSpecError(
                "a batch query enumerates by itself: leave out source and assignmentDir, and name"
                " what to read",
                field="options",
            )
        journal = options.journal and replace(options.journal, is_batch=True)
        # One micro-batch reads everything: nothing could wait for a slower split.
        self._options = replace(options, alignment=None, journal=journal)
        # Here: Spark pickles a batch reader before it is planned.
        check_tasks(self._options)

    def __reduce__(self) -> Any:
        return task_reader(self._options), ()

    @plain_errors()
    def partitions(self) -> Sequence[InputPartition]:
        planner = planner_of(self._options)
        try:
            begin = planner.initialOffset()
            planner.prepareForTriggerAvailableNow()
            # Before anything is read: rows that were given cannot be taken back.
            planner.check_named()
            planned = _planned(planner, begin)
            # No one is left to tell what reading took: the planner stops before the tasks start.
            for part in planned:
                part.samples = None
            # Without any partition Spark would make one of its own, and have that read.
            return planned or [ReaderPartition(subtask_id=0, ranges=())]
        finally:
            # Planned once: its threads and clients would stay as long as the process.
            planner.stop()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        # Spark passes what `partitions` returned
        assert isinstance(partition, ReaderPartition)  # noqa: S101
        return task_reader(self._options)().read(partition)


def _planned(planner: "StreamPlanner", begin: dict[str, Any]) -> list[ReaderPartition]:
    """Return what all micro-batches read that a stream would need.

    One, unless readers ask for splits.
    """
    if not planner.is_pulling:
        end = planner.latestOffset(begin, ReadAllAvailable())
        tell_short(stream_offset.from_json(end))
        return list(planner.partitions(begin, end))
    found: list[ReaderPartition] = []
    while (end := planner.latestOffset(begin, UNLIMITED)) != begin:
        found += [part for part in planner.partitions(begin, end) if part.ranges]
        begin = end
    return found
