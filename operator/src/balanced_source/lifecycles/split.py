"""Life of a split that is found by discovery, as enumerator and coordinator see it."""

import enum
from typing import Final

from balanced_source.lifecycles.table import Lifecycle


class SplitPhase(enum.Enum):
    """Where a split stands.

    UNKNOWN: not listed, or listed and not looked at yet.
    IN_FLIGHT: found; where to start is being looked up.
    UNASSIGNED: it has a position and no owner.
    ASSIGNED: it has an owner. Its former host may have to let go of it first; until then it is
        published as pending.
    LEAVING: it has no owner any more, and its host has not let go of it yet.
    RETAINED: it is gone; should it return until a deadline, it continues where it was.
    """

    UNKNOWN = "Unknown"
    IN_FLIGHT = "InFlight"
    UNASSIGNED = "Unassigned"
    ASSIGNED = "Assigned"
    LEAVING = "Leaving"
    RETAINED = "Retained"


class SplitEvent(enum.Enum):
    """What happens to a split."""

    LISTED = "a discovery lists it"
    RESOLVED = "its start is known"
    FAILED = "the look-up fails"
    REPORTED = "a reader reports it"
    PLACED = "it gets an owner"
    RETURNED = "its reader is gone, or never had it"
    REMOVED = "it is gone, confirmed"
    RELEASED = "its host has let go of it"
    EXPIRED = "its retention ends"


SPLIT: Final = Lifecycle(
    name="split",
    first=SplitPhase.UNKNOWN,
    moves={
        (SplitPhase.UNKNOWN, SplitEvent.LISTED): SplitPhase.IN_FLIGHT,
        (SplitPhase.IN_FLIGHT, SplitEvent.RESOLVED): SplitPhase.UNASSIGNED,
        (SplitPhase.IN_FLIGHT, SplitEvent.FAILED): SplitPhase.UNKNOWN,
        (SplitPhase.UNKNOWN, SplitEvent.REPORTED): SplitPhase.UNASSIGNED,
        (SplitPhase.IN_FLIGHT, SplitEvent.REPORTED): SplitPhase.UNASSIGNED,
        (SplitPhase.UNASSIGNED, SplitEvent.PLACED): SplitPhase.ASSIGNED,
        (SplitPhase.ASSIGNED, SplitEvent.PLACED): SplitPhase.ASSIGNED,
        (SplitPhase.ASSIGNED, SplitEvent.RETURNED): SplitPhase.UNASSIGNED,
        (SplitPhase.UNASSIGNED, SplitEvent.REMOVED): SplitPhase.RETAINED,
        (SplitPhase.ASSIGNED, SplitEvent.REMOVED): SplitPhase.LEAVING,
        (SplitPhase.LEAVING, SplitEvent.RELEASED): SplitPhase.RETAINED,
        (SplitPhase.RETAINED, SplitEvent.LISTED): SplitPhase.UNASSIGNED,
        (SplitPhase.RETAINED, SplitEvent.EXPIRED): SplitPhase.UNKNOWN,
    },
)
"""Without retention (the default) the deadline of a removed split is the moment in which its host
has let go of it."""
