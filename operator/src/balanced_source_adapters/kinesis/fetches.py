"""What the readers of shards tell the reader of a task."""

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from balanced_source.api import SplitId
from balanced_source.connectors.kinesis import ShardSplit


class FetchedUpTo(NamedTuple):
    """How far a shard was behind when it was fetched last.

    Attributes:
        position: behind what was fetched.
        arrived: when the last fetched record arrived, in microseconds since the epoch; None before
            the first one.
        behind: how far that record is behind the newest, in milliseconds.
    """

    position: int
    arrived: int | None
    behind: int


@dataclass(slots=True)
class Fetches:
    """What the readers of shards tell the reader of a task. They fill it in their threads.

    Attributes:
        tips: splits whose available records were all fetched.
        newest: split → its newest fetch.
        read_up_to: split → position, and when it had nothing more; see `ShardSplit.read_up_to`.
        gaps: split → how often records of it had expired, and were skipped.
    """

    tips: set[SplitId] = field(default_factory=set)
    newest: dict[SplitId, FetchedUpTo] = field(default_factory=dict)
    read_up_to: dict[SplitId, tuple[int, int]] = field(default_factory=dict)
    gaps: Counter[SplitId] = field(default_factory=Counter)

    def note(self, split: ShardSplit, arrived: int | None, behind: int | None) -> None:
        """Note the newest fetch of a split; see `FetchedUpTo`."""
        if behind is None:
            self.newest.pop(split.split_id, None)
        else:
            self.newest[split.split_id] = FetchedUpTo(split.offset, arrived, behind)

    def forget(self, split_id: SplitId) -> None:
        """Forget a split that this reader was given, or has lost."""
        self.tips.discard(split_id)
        self.newest.pop(split_id, None)
        self.read_up_to.pop(split_id, None)
