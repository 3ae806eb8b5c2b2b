"""Life of a source, as people see it: what its condition says."""

import enum
from typing import Final

from balanced_source.lifecycles.table import Lifecycle


class SourcePhase(enum.Enum):
    """Where a source stands.

    DISCOVERING: nothing is assigned yet.
    WAITING: no reader host is active: none has registered yet, or the gate is closed.
    ADOPTING: an epoch is published that not every host has adopted.
    READING: all hosts read what the newest epoch says.
    FINISHED: everything that there will ever be has been read.
    """

    DISCOVERING = "Discovering"
    WAITING = "Waiting"
    ADOPTING = "Adopting"
    READING = "Reading"
    FINISHED = "Finished"


class SourceTransition(enum.Enum):
    """What happens to a source."""

    ASSIGNED = "a new epoch"
    PASSED = "the gate opens"
    ACKNOWLEDGED = "all hosts acknowledge"
    INTERRUPTED = "a host is lost, or registers again"
    EXHAUSTED = "all splits are finished"


SOURCE: Final = Lifecycle(
    name="source",
    first=SourcePhase.DISCOVERING,
    moves={
        (SourcePhase.DISCOVERING, SourceTransition.ASSIGNED): SourcePhase.WAITING,
        (SourcePhase.DISCOVERING, SourceTransition.PASSED): SourcePhase.ADOPTING,
        (SourcePhase.WAITING, SourceTransition.ASSIGNED): SourcePhase.WAITING,
        (SourcePhase.WAITING, SourceTransition.PASSED): SourcePhase.ADOPTING,
        (SourcePhase.ADOPTING, SourceTransition.ASSIGNED): SourcePhase.ADOPTING,
        (SourcePhase.ADOPTING, SourceTransition.ACKNOWLEDGED): SourcePhase.READING,
        (SourcePhase.ADOPTING, SourceTransition.INTERRUPTED): SourcePhase.WAITING,
        (SourcePhase.READING, SourceTransition.ASSIGNED): SourcePhase.ADOPTING,
        (SourcePhase.READING, SourceTransition.INTERRUPTED): SourcePhase.WAITING,
        (SourcePhase.READING, SourceTransition.EXHAUSTED): SourcePhase.FINISHED,
        (SourcePhase.FINISHED, SourceTransition.ASSIGNED): SourcePhase.ADOPTING,
        (SourcePhase.FINISHED, SourceTransition.INTERRUPTED): SourcePhase.WAITING,
    },
)
"""The phase is not stored: it follows from the coordinator's state, see
`balanced_source.coordinator.phase`."""
