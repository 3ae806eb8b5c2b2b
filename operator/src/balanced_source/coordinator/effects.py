"""What a coordinator wants done, in this order, one after the other.

Every effect can be repeated. When one fails, those behind it must not be executed: above all, an assignment is
published only after the state that implies it has been stored (write ahead).
"""

from dataclasses import dataclass
from typing import Any, TypeAlias

from balanced_source.api import AsyncCall
from balanced_source.coordinator.state import Checkpoint
from balanced_source.documents.assignment import Assignment


@dataclass(frozen=True, slots=True)
class PersistState:
    """Store the state by compare-and-swap. A conflict means that this coordinator is not the only one: reload."""

    checkpoint: Checkpoint[Any, Any]


@dataclass(frozen=True, slots=True)
class PublishAssignment:
    """Write the document that reader hosts follow."""

    assignment: Assignment


@dataclass(frozen=True, slots=True)
class ExecuteCall:
    """Execute a call in `delay` seconds, off the event loop, then feed `CallCompleted` with its id."""

    call_id: int
    call: AsyncCall
    delay: float = 0.0


@dataclass(frozen=True, slots=True)
class ReportFact:
    """Tell people: a log line and, once per change, an event on the resource. Nothing depends on it."""

    reason: str
    message: str
    warning: bool = False


Effect: TypeAlias = PersistState | PublishAssignment | ExecuteCall | ReportFact
