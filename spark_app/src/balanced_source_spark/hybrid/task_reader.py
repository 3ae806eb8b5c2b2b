"""What a task unpickles: the task readers of the parts.

It imports what reading needs and no more.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from balanced_source.connectors.hybrid import HybridReaderSettings
from balanced_source_spark.contract.half import TaskReader
from balanced_source_spark.partition import ReaderPartition


@dataclass(frozen=True)
class HybridTaskReader:
    """See `balanced_source_spark.contract.half.TaskReader`.

    Attributes:
        readers: name of each part → what makes its task reader.
    """

    readers: Mapping[str, Callable[[], TaskReader]]

    def read(self, partition: ReaderPartition) -> Iterator[pa.RecordBatch]:
        """Return the rows of the ranges, part after part."""
        for name, make in self.readers.items():
            ranges = tuple(
                replace(piece, split_id=piece.split_id[1:])
                for piece in partition.ranges
                if piece.split_id[0] == name
            )
            if ranges:
                settings = HybridReaderSettings.of(partition.settings).part(name)
                # What the task skips is told by the ids that planning knows.
                target = partition.samples and partition.samples._replace(part=name)
                yield from make().read(
                    ReaderPartition(
                        subtask_id=partition.subtask_id,
                        ranges=ranges,
                        splits=partition.splits,
                        settings=settings,
                        samples=target,
                    )
                )
