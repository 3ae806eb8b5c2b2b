"""A life cycle as a table of (phase, event) → phase."""

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

from balanced_source.errors import ContractViolationError

PhaseT = TypeVar("PhaseT", bound=enum.Enum)
EventT = TypeVar("EventT", bound=enum.Enum)


class Row(NamedTuple):
    """One line of a table, in words."""

    phase: str
    event: str
    target: str


@dataclass(frozen=True)
class Lifecycle(Generic[PhaseT, EventT]):
    """What may happen to something in which phase, and where that leads.

    What is not in the table cannot happen.

    Attributes:
        name: of the object whose life cycle this is.
        first: phase in which it begins.
        moves: the table.
    """

    name: str
    first: PhaseT
    moves: Mapping[tuple[PhaseT, EventT], PhaseT] = field(repr=False)

    def allows(self, phase: PhaseT, event: EventT) -> bool:
        """Whether `event` can happen in `phase`."""
        return (phase, event) in self.moves

    def after(self, phase: PhaseT, event: EventT) -> PhaseT:
        """The phase after `event`.

        Raises:
            ContractViolationError: it cannot happen in this phase.
        """
        try:
            return self.moves[phase, event]
        except KeyError:
            # What the table lacks was not thought of, so no decision that follows can be trusted.
            raise ContractViolationError(
                f"{self.name}: {event.value!r} cannot happen while {phase.value}"
            ) from None

    def rows(self) -> Iterator[Row]:
        """The table in its order."""
        for (phase, event), target in self.moves.items():
            yield Row(phase.value, event.value, target.value)
