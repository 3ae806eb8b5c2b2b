"""Life of a reader host as it sees itself.

One incarnation, from its first planning call to its end.
"""

import enum
from typing import Final

from balanced_source.lifecycles.table import Lifecycle


class IncarnationPhase(enum.Enum):
    """Where an incarnation stands.

    STARTING: what is committed has not been seen yet, at the start or in a new lineage, so nothing
        can be reported.
    REGISTERED: it reports what it holds, and reads nothing.
    READING: it reads what it was assigned.
    FENCED: a newer incarnation has taken over; it neither reads nor reports any more.
    """

    STARTING = "Starting"
    REGISTERED = "Registered"
    READING = "Reading"
    FENCED = "Fenced"


class IncarnationEvent(enum.Enum):
    """What happens to an incarnation."""

    COMMITTED = "Spark tells what is committed"
    ADOPTED = "it adopts an epoch"
    FORGOTTEN = "one of several hosts sees a new lineage"
    FENCED = "a newer incarnation is seen"


INCARNATION: Final = Lifecycle(
    name="reader host, as it sees itself",
    first=IncarnationPhase.STARTING,
    moves={
        (IncarnationPhase.STARTING, IncarnationEvent.COMMITTED): IncarnationPhase.REGISTERED,
        (IncarnationPhase.REGISTERED, IncarnationEvent.COMMITTED): IncarnationPhase.REGISTERED,
        (IncarnationPhase.REGISTERED, IncarnationEvent.ADOPTED): IncarnationPhase.READING,
        (IncarnationPhase.READING, IncarnationEvent.COMMITTED): IncarnationPhase.READING,
        (IncarnationPhase.READING, IncarnationEvent.ADOPTED): IncarnationPhase.READING,
        (IncarnationPhase.STARTING, IncarnationEvent.FORGOTTEN): IncarnationPhase.STARTING,
        (IncarnationPhase.REGISTERED, IncarnationEvent.FORGOTTEN): IncarnationPhase.STARTING,
        (IncarnationPhase.READING, IncarnationEvent.FORGOTTEN): IncarnationPhase.STARTING,
        (IncarnationPhase.STARTING, IncarnationEvent.FENCED): IncarnationPhase.FENCED,
        (IncarnationPhase.REGISTERED, IncarnationEvent.FENCED): IncarnationPhase.FENCED,
        (IncarnationPhase.READING, IncarnationEvent.FENCED): IncarnationPhase.FENCED,
        (IncarnationPhase.FENCED, IncarnationEvent.FENCED): IncarnationPhase.FENCED,
        (IncarnationPhase.FENCED, IncarnationEvent.COMMITTED): IncarnationPhase.FENCED,
    },
)
"""What a fenced incarnation has begun may still end, but it begins nothing.

In a new lineage one of several hosts must not read on what it was assigned before: others may get
it as soon as the host has reported where it is. So it ends the micro-batch that it has begun,
reports, and waits until it is addressed.
"""
