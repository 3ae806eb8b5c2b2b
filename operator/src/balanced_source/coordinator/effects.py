"""What a coordinator wants done, in this order, in turn.

Every effect can be repeated. When one fails, those behind it must not be executed: above all, an
assignment is published only after the state that implies it has been stored (write ahead).

A program that runs a coordinator offers one method per effect (`EffectPorts`), and `perform`
chooses it.
"""

from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeVar, assert_never

from balanced_source.api import AsyncCall
from balanced_source.coordinator.state import Checkpoint
from balanced_source.documents.assignment import Assignment


@dataclass(frozen=True, slots=True)
class PersistState:
    """Store the state by compare-and-swap.

    A conflict means that this coordinator is not the only one: reload.
    """

    checkpoint: Checkpoint[Any, Any]


@dataclass(frozen=True, slots=True)
class PublishAssignment:
    """Write the document that reader hosts follow."""

    assignment: Assignment


@dataclass(frozen=True, slots=True)
class ExecuteCall:
    """Execute a call in `delay` seconds, off the event loop; feed `CallCompleted` with its id."""

    call_id: int
    call: AsyncCall
    delay: float = 0.0


@dataclass(frozen=True, slots=True)
class ReportFact:
    """Report a fact to users: a log line and, once per change, an event on the resource.

    No decision depends on it.
    """

    reason: str
    message: str
    warning: bool = False


Effect: TypeAlias = PersistState | PublishAssignment | ExecuteCall | ReportFact

DoneT_co = TypeVar("DoneT_co", covariant=True)


class EffectPorts(Protocol[DoneT_co]):
    """Executes effects.

    Either at once (`DoneT_co` is None), or asynchronously (`DoneT_co` is an awaitable).
    """

    def persist_state(self, effect: PersistState) -> DoneT_co:
        """See `PersistState`."""
        ...

    def publish_assignment(self, effect: PublishAssignment) -> DoneT_co:
        """See `PublishAssignment`."""
        ...

    def execute_call(self, effect: ExecuteCall) -> DoneT_co:
        """See `ExecuteCall`."""
        ...

    def report_fact(self, effect: ReportFact) -> DoneT_co:
        """See `ReportFact`."""
        ...


def perform(effect: Effect, ports: EffectPorts[DoneT_co]) -> DoneT_co:
    """Execute one effect, and return the result of its port."""
    match effect:
        case PersistState():
            return ports.persist_state(effect)
        case PublishAssignment():
            return ports.publish_assignment(effect)
        case ExecuteCall():
            return ports.execute_call(effect)
        case ReportFact():
            return ports.report_fact(effect)
        case _:
            assert_never(effect)
