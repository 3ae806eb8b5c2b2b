"""What travels from the planning process to a reader task."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Final, NamedTuple

from pyspark.sql.datasource import InputPartition

from balanced_source.host import SplitRange
from balanced_source.host.journaling import Share
from balanced_source.host.ranges import FIELDS, ranges_of


class SampleTarget(NamedTuple):
    """Where tasks send their samples.

    Attributes:
        host: address of the planning process.
        port: of its socket.
        token: proves that a sample comes from a task of this query.
        part: of a hybrid source whose splits the task knows; empty for any other source.
    """

    host: str
    port: int
    token: str
    part: str = ""


@dataclass
class ReaderPartition(InputPartition):
    """One reader's share of one micro-batch.

    Attributes:
        subtask_id: the reader.
        ranges: what it reads.
        splits: how many splits the reader owns, read now or not.
        settings: how it connects, from the assignment; without secrets.
        share: what it reads of a source whose ends are not known; there are no ranges then.
        may_end: whether splits without a stop may come to an end there; True also where an older
            operator does not say.
        samples: where its task says what reading took; None: nowhere.
    """

    subtask_id: int
    ranges: tuple[SplitRange, ...]
    splits: int = 1
    settings: Mapping[str, Any] = field(default_factory=dict)
    share: Share | None = None
    may_end: bool = True
    samples: SampleTarget | None = None

    def __post_init__(self) -> None:
        super().__init__(self.subtask_id)

    def __getstate__(self) -> dict[str, Any]:
        """Ranges travel as columns: an object for each split would cost several times as much."""
        columns = tuple(tuple(map(field_of, self.ranges)) for field_of in _FIELDS)
        return {**self.__dict__, "ranges": columns if self.ranges else ()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, ranges=ranges_of(state["ranges"]))


_FIELDS: Final = tuple(map(attrgetter, FIELDS))
