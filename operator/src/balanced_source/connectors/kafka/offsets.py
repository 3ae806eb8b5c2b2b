"""Where reading starts: FLIP-27's ``OffsetsInitializer``, as a value that an adapter with a client resolves."""

import enum
from dataclasses import dataclass
from typing import TypeAlias


class Anchor(enum.Enum):
    """An end of a partition."""

    EARLIEST = "Earliest"
    LATEST = "Latest"


@dataclass(frozen=True, slots=True)
class FromAnchor:
    """Start at one end. Latest is resolved when the split is discovered, never at the first read."""

    anchor: Anchor


OffsetsInitializer: TypeAlias = FromAnchor

EARLIEST = FromAnchor(Anchor.EARLIEST)
LATEST = FromAnchor(Anchor.LATEST)
