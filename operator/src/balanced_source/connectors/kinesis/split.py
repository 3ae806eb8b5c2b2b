"""A shard of a stream: the unit of assigned work."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Self

from balanced_source.api import IDENTITY, READ_UP_TO, STOP, BoundedSplit, Position, SplitId

END: Final = 10**129
"""Position behind the last record of a closed shard: larger than any sequence number, which has 129
digits at most."""

_TIME: Final = "time"
_SEQUENCE: Final = "sequence"
_FOUND: Final = "found"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardSplit(BoundedSplit):
    """Records of a shard, from a position on.

    Attributes:
        stream: name or ARN, as the user has given it.
        shard: id of the shard.
        offset: 0 before the first record; else the sequence number of the last record that was
            read, plus 1; or `END`.
        time: with offset 0, read records that arrived at or after this time, in milliseconds since
            the epoch. None: from the oldest record.
        sequence: with offset 0, read from this sequence number on.
        found: when the service was asked where reading starts, in milliseconds since the epoch by
            its clock; None: unknown.
        created: what tells the stream from a former one with its name; None: unknown.
        read_up_to: when the shard had nothing behind `offset`, and nothing before it was missing,
            in milliseconds since the epoch by the clock of the service; None: unknown.
        stop: first position that is not read; `END` if the shard is read as long as it gets
            records.
    """

    stream: str
    shard: str
    offset: int = 0
    time: int | None = None
    sequence: int | None = None
    found: int | None = None
    created: str | None = None
    read_up_to: int | None = None
    stop: int = END

    @property
    def split_id(self) -> SplitId:
        return (self.stream, self.shard)

    @property
    def position(self) -> Position:
        return self.offset

    @property
    def stopping_position(self) -> Position:
        return self.stop

    def at(self, position: Position) -> Self:
        offset = int(position or 0)
        # It is of a position: behind another one records may be missing.
        read_up_to = self.read_up_to if offset == self.offset else None
        return replace(self, offset=offset, read_up_to=read_up_to)

    def from_its_oldest(self) -> Self:
        """Return the split from the oldest record that is retained."""
        return replace(self, offset=0, time=None, sequence=None, read_up_to=None)

    def attributes(self) -> Mapping[str, Any]:
        known = {
            IDENTITY: self.created,
            _TIME: self.time,
            _SEQUENCE: self.sequence,
            _FOUND: self.found,
            READ_UP_TO: self.read_up_to,
        }
        return {
            STOP: self.stop,
            **{name: value for name, value in known.items() if value is not None},
        }


def time_of(attributes: Mapping[str, Any]) -> int | None:
    """Return the time in a split's attributes where its reading starts; None: there is none."""
    return attributes.get(_TIME)


def split_of(split_id: SplitId, position: Position, attributes: Mapping[str, Any]) -> ShardSplit:
    """Return the split with this id, position and attributes.

    Inverse of what `ShardSplit` says of itself.
    """
    stream, shard = split_id
    return ShardSplit(
        stream=str(stream),
        shard=str(shard),
        offset=int(position or 0),
        time=attributes.get(_TIME),
        sequence=attributes.get(_SEQUENCE),
        found=attributes.get(_FOUND),
        created=attributes.get(IDENTITY),
        read_up_to=attributes.get(READ_UP_TO),
        stop=int(attributes.get(STOP, END)),
    )
