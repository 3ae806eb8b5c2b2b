"""Splits: the unit of assigned work.

FLIP-27's ``SourceSplit`` carries its own position: its reader knows where to continue. Here the
position is part of the contract, because Spark's stream offset is where a reader's state lives: the
reader host writes the positions of its splits there, and reports them from there after a restart
(FLIP-537).
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Final, Self, TypeAlias

SplitId: TypeAlias = tuple[str | int, ...]
"""Identity of a split: a tuple such as (cluster, topic, partition), never a joined string.

All ids of one source have the same length and the same type at each place, so that they sort.
"""

Position: TypeAlias = int | None
"""Where to continue reading: a number that only grows while the split is read (Kafka: the next
offset).

That it grows is relied upon: of two positions of one split the larger is the newer. It goes back
only where a log was cut, in the stream offset of the host that reads it, which beats what others
know. None where it has no meaning.
"""

Json: TypeAlias = Any
"""A JSON value: None, bool, int, float, str, list or dict of them."""


class SourceSplit(ABC):
    """A part of the source that one reader reads at a time.

    Immutable; hashable by its id and position.
    """

    @property
    @abstractmethod
    def split_id(self) -> SplitId:
        """Identity, the same for the whole life of the split and in every process."""

    @property
    @abstractmethod
    def position(self) -> Position:
        """Where reading starts or continues."""

    @abstractmethod
    def at(self, position: Position) -> Self:
        """The same split, to be read from `position` on."""

    def attributes(self) -> Mapping[str, Json]:
        """What a reader must know besides the position (e.g. where to stop).

        Small, JSON, nothing secret.
        """
        return {}


STOP: Final = "stop"
"""Attribute of a bounded split: its stopping position. Every connector calls it so."""


READ_UP_TO: Final = "readUpTo"
"""Attribute of a split that is read with a journal: the time of the server, in milliseconds since
the epoch, at which nothing was behind its position, and nothing before it was missing. A reader may
say it in its snapshots. As long as the split stays at its position, later tasks get it back."""


IDENTITY: Final = "id"
"""Attribute of a split: what tells it from a former one of the same id, e.g. of a topic that was
deleted and recreated. Text; absent where there is no such thing. Every connector calls it so."""


def is_other(reported: Mapping[str, Json], known: Mapping[str, Json]) -> bool:
    """Whether two sets of attributes under one id belong to different splits.

    They do not if either has no identity.
    """
    one, other = reported.get(IDENTITY), known.get(IDENTITY)
    return one is not None and other is not None and one != other


class BoundedSplit(SourceSplit):
    """A split that may have an end."""

    @property
    @abstractmethod
    def stopping_position(self) -> Position:
        """First position that is not read any more; None if the split has no end."""

    @property
    def is_finished(self) -> bool:
        """True when all up to the stopping position has been read."""
        stop, position = self.stopping_position, self.position
        return stop is not None and position is not None and position >= stop
