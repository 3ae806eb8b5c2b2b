"""Where reading of a stream starts."""

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from balanced_source.api import SplitId
from balanced_source.connectors.kinesis.lineage import Lineage, Shard


class StartAt(enum.StrEnum):
    """Kinds of start positions; names of the Kinesis API, but for SEQUENCE_NUMBERS."""

    TRIM_HORIZON = "TRIM_HORIZON"
    LATEST = "LATEST"
    AT_TIMESTAMP = "AT_TIMESTAMP"
    SEQUENCE_NUMBERS = "SEQUENCE_NUMBERS"


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Where reading starts.

    Attributes:
        at: kind.
        time: for AT_TIMESTAMP, in milliseconds since the epoch.
        sequences: for SEQUENCE_NUMBERS: stream, shard, and the number of the first record. Their ancestors are not
            read. Other shards are read from their oldest record.
    """

    at: StartAt = StartAt.TRIM_HORIZON
    time: int | None = None
    sequences: tuple[tuple[str, str, int], ...] = ()

    def skipped(self, shards: Mapping[SplitId, Shard]) -> frozenset[SplitId]:
        """Return the shards of a stream that lie before the start: they are not read."""
        match self.at:
            case StartAt.LATEST:
                return frozenset(split_id for split_id, shard in shards.items() if not shard.is_open)
            case StartAt.SEQUENCE_NUMBERS:
                named = {(stream, shard) for stream, shard, _ in self.sequences} & shards.keys()
                return Lineage(shards=shards).with_ancestors(named) - named
            case StartAt.TRIM_HORIZON | StartAt.AT_TIMESTAMP:
                return frozenset()

    def for_later(self) -> "Start":
        """Return the start of shards that are found after the first discovery.

        A child may have begun before the user's time stamp. After LATEST, everything in a child is new.
        """
        return self if self.at is StartAt.AT_TIMESTAMP else TRIM_HORIZON

    def sequence_of(self, split_id: SplitId) -> int | None:
        """Return the sequence number that the user names for a shard."""
        return next((number for stream, shard, number in self.sequences if (stream, shard) == split_id), None)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON value."""
        return {"at": self.at.value, "time": self.time, "sequences": [list(entry) for entry in self.sequences]}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Inverse of `to_json`."""
        entries: Iterable[Any] = data["sequences"]
        return cls(
            at=StartAt(data["at"]),
            time=None if data["time"] is None else int(data["time"]),
            sequences=tuple((str(stream), str(shard), int(number)) for stream, shard, number in entries),
        )


TRIM_HORIZON: Final = Start()
