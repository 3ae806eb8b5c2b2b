"""Where reading of a stream starts."""

import enum
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from balanced_source.api import SplitId
from balanced_source.connectors.discovery import some
from balanced_source.connectors.kinesis.lineage import Lineage, Shard
from balanced_source.errors import InvalidSpecError
from balanced_source.names import shown


class StartAt(enum.StrEnum):
    """Kinds of start positions; names of the Kinesis API, except for SEQUENCE_NUMBERS."""

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
        sequences: for SEQUENCE_NUMBERS: stream, shard, and the number of the first record. Their
            ancestors are not read. Other shards are read from their oldest record.
    """

    at: StartAt = StartAt.TRIM_HORIZON
    time: int | None = None
    sequences: tuple[tuple[str, str, int], ...] = ()

    def skipped(self, shards: Mapping[SplitId, Shard]) -> frozenset[SplitId]:
        """Return the shards of a stream that lie before the start: they are not read."""
        match self.at:
            case StartAt.LATEST:
                return frozenset(
                    split_id for split_id, shard in shards.items() if not shard.is_open
                )
            case StartAt.SEQUENCE_NUMBERS:
                named = {(stream, shard) for stream, shard, _ in self.sequences} & shards.keys()
                # The named records come after those of all ancestors, so the user starts behind
                # them.
                return Lineage(shards=shards).with_ancestors(named) - named
            case StartAt.TRIM_HORIZON | StartAt.AT_TIMESTAMP:
                return frozenset()

    def fault(self, stream: str, shards: Mapping[SplitId, Shard]) -> str:
        """Return why a stream with these shards cannot be started there; empty if it can."""
        named = sorted((stream, shard) for name, shard, _ in self.sequences if name == stream)
        # Without them, these shards would be read from their oldest record.
        if unknown := [split_id[1:] for split_id in named if split_id not in shards]:
            return (
                f"does not have the shards {some(unknown)}, whose starting sequence numbers are"
                " given: correct their names, or leave them out to read from the oldest record"
            )
        lineage = Lineage(shards=shards)
        for _, shard in named:
            above = lineage.with_ancestors([(stream, shard)]) - {(stream, shard)}
            # It would be read before the other one, which begins behind all of it.
            if ancestors := [split_id for split_id in named if split_id in above]:
                return (
                    f"has the shard {shard} and its ancestor {ancestors[0][1]}, and starting"
                    " sequence numbers are given of both. Ancestors of a named shard are not read:"
                    f" leave out {ancestors[0][1]} to start in {shard}, or leave out {shard} to"
                    f" read all of it after {ancestors[0][1]}"
                )
        return ""

    def sequence_of(self, split_id: SplitId) -> int | None:
        """Return the sequence number that the user names for a shard."""
        return next(
            (number for stream, shard, number in self.sequences if (stream, shard) == split_id),
            None,
        )

    def to_json(self) -> dict[str, Any]:
        """Return the JSON value."""
        return {
            "at": self.at.value,
            "time": self.time,
            "sequences": [list(entry) for entry in self.sequences],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Inverse of `to_json`."""
        entries: Iterable[Any] = data["sequences"]
        return cls(
            at=StartAt(data["at"]),
            time=None if data["time"] is None else int(data["time"]),
            sequences=tuple(
                (str(stream), str(shard), int(number)) for stream, shard, number in entries
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StartWords:
    """How a user writes a start.

    Attributes:
        time: field of the time.
        sequences: field of the sequence numbers.
        kinds: kind of start → how it is asked for.
    """

    time: str
    sequences: str
    kinds: Mapping[StartAt, str]


def checked_start(start: Start, streams: Collection[str], words: StartWords) -> Start:
    """Return a start whose parts fit together.

    Raises:
        InvalidSpecError: they do not, or it names another stream.
    """
    if unknown := sorted({stream for stream, _, _ in start.sequences}.difference(streams)):
        raise InvalidSpecError(
            f"{shown(unknown[0])} is not one of the streams", field=words.sequences
        )
    for is_given, owner, field in (
        (start.time is not None, StartAt.AT_TIMESTAMP, words.time),
        (bool(start.sequences), StartAt.SEQUENCE_NUMBERS, words.sequences),
    ):
        if is_given != (start.at is owner):
            raise InvalidSpecError(
                f"goes together with {words.kinds[owner]}: set both or none", field=field
            )
    return start


TRIM_HORIZON: Final = Start()
