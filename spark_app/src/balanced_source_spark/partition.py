"""What travels from the planning process to a reader task."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Final, NamedTuple

from pyspark.sql.datasource import InputPartition

from balanced_source.host import SplitRange
from balanced_source.host.journaling import Share


class SampleTarget(NamedTuple):
    """Where tasks send their samples.

    Attributes:
        host: address of the planning process.
        port: of its socket.
        token: proves that a sample comes from a task of this query.
    """

    host: str
    port: int
    token: str


@dataclass
class ReaderPartition(InputPartition):
    """One reader's share of one micro-batch.

    Attributes:
        subtask_id: the reader.
        ranges: what it reads.
        splits: how many splits the reader owns, read now or not.
        settings: how it connects, from the assignment; without secrets.
        share: what it reads of a source whose ends are not known; there are no ranges then.
        samples: where its task says what reading took; None: nowhere.
    """

    subtask_id: int
    ranges: tuple[SplitRange, ...]
    splits: int = 1
    settings: Mapping[str, Any] = field(default_factory=dict)
    share: Share | None = None
    samples: SampleTarget | None = None

    def __post_init__(self) -> None:
        super().__init__(self.subtask_id)

    def __getstate__(self) -> dict[str, Any]:
        """Ranges travel as columns: an object for each split would cost several times as much."""
        return {**self.__dict__, "ranges": tuple(zip(*map(_FIELDS, self.ranges), strict=True))}

    def __setstate__(self, state: dict[str, Any]) -> None:
        rows = zip(*state["ranges"], strict=True)
        ranges = tuple(
            SplitRange(split_id=split_id, start=start, end=end, identity=identity, term=term)
            for split_id, start, end, identity, term in rows
        )
        self.__dict__.update(state, ranges=ranges)


_FIELDS: Final = attrgetter("split_id", "start", "end", "identity", "term")
