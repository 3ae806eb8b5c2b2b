"""Life of a reader host as the coordinator sees it.

One running application attempt after another under one name.
"""

import enum
from typing import Final

from balanced_source.lifecycles.table import Lifecycle


class HostPhase(enum.Enum):
    """Where a host stands.

    EXPECTED: not seen in this lineage; its readers may be given splits, which it takes when it
        comes.
    RECOVERING: it has registered, and waits behind the gate; nothing is assigned to it, and nothing
        addressed.
    ACTIVE: it is addressed by assignments, and acknowledges them.
    LOST: its pods are gone; what it owns waits for its next incarnation.
    """

    EXPECTED = "Expected"
    RECOVERING = "Recovering"
    ACTIVE = "Active"
    LOST = "Lost"


class HostEvent(enum.Enum):
    """What the coordinator learns of a host."""

    REGISTERED = "a new incarnation registers"
    PASSED = "the gate opens"
    REPORTED = "the incarnation reports"
    GONE = "its pods are gone"
    FORGOTTEN = "the state was lost"


HOST: Final = Lifecycle(
    name="reader host",
    first=HostPhase.EXPECTED,
    moves={
        (HostPhase.EXPECTED, HostEvent.REGISTERED): HostPhase.RECOVERING,
        (HostPhase.RECOVERING, HostEvent.PASSED): HostPhase.ACTIVE,
        (HostPhase.RECOVERING, HostEvent.REPORTED): HostPhase.RECOVERING,
        (HostPhase.RECOVERING, HostEvent.REGISTERED): HostPhase.RECOVERING,
        (HostPhase.ACTIVE, HostEvent.REPORTED): HostPhase.ACTIVE,
        (HostPhase.ACTIVE, HostEvent.GONE): HostPhase.LOST,
        (HostPhase.ACTIVE, HostEvent.REGISTERED): HostPhase.RECOVERING,
        (HostPhase.LOST, HostEvent.REPORTED): HostPhase.ACTIVE,
        (HostPhase.LOST, HostEvent.REGISTERED): HostPhase.RECOVERING,
        (HostPhase.EXPECTED, HostEvent.FORGOTTEN): HostPhase.EXPECTED,
        (HostPhase.RECOVERING, HostEvent.FORGOTTEN): HostPhase.EXPECTED,
        (HostPhase.ACTIVE, HostEvent.FORGOTTEN): HostPhase.EXPECTED,
        (HostPhase.LOST, HostEvent.FORGOTTEN): HostPhase.EXPECTED,
    },
)
"""A late report of a host that was thought lost shows that it lives; its readers are registered
again."""
