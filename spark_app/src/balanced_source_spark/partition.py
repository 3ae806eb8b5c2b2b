"""What travels from the planning process to a reader task."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql.datasource import InputPartition

from balanced_source.host import SplitRange


@dataclass
class ReaderPartition(InputPartition):
    """One reader's share of one micro-batch.

    Attributes:
        subtask_id: the reader.
        ranges: what it reads.
        splits: how many splits the reader owns, read now or not.
        settings: how it connects, from the assignment; without secrets.
    """

    subtask_id: int
    ranges: tuple[SplitRange, ...]
    splits: int = 1
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__init__(self.subtask_id)
