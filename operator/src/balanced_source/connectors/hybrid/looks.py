"""What the names in later parts stood for when the first part was begun.

A history tells how far a topic was read by the topic's name. If the topic is deleted and created
again while the history is read, the name stands for another topic, whose first records would be
skipped. So each later part that starts behind another one is asked once at the beginning, and what
it said is handed on to it at the switch.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self

from balanced_source.api import (
    CallFailure,
    Json,
    Meanings,
    SupportsSwitchTo,
    meanings_from_json,
)
from balanced_source.backoff import backoff
from balanced_source.connectors.hybrid.values import HybridPart, PartCall

LOOK: Final = "handle_look"
"""Handler of a `PartCall` that is a look; no part's enumerator has such a method."""

CONFIRMATION: Final = 5.0
"""Seconds until a name that stands for nothing is looked for again."""

LASTING: Final = 3
"""Failures in a row after which an event names them."""

MAX_BACKOFF: Final = 60.0
"""Seconds between attempts at a scope that does not answer, at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Looks:
    """What was found out.

    Attributes:
        known: name of the part → see `SwitchPosition.meanings`. The first answer for a name counts.
        failures: (part, scope) → failures in a row. A restart forgets them.
        missed: (part, scope) → names that stood for nothing in the newest answer, which may be
            wrong. A restart forgets them.
    """

    known: Mapping[str, Meanings] = field(default_factory=dict)
    failures: Mapping[tuple[str, str], int] = field(default_factory=dict)
    missed: Mapping[tuple[str, str], frozenset[str]] = field(default_factory=dict)

    def answered(self, part: HybridPart, call: PartCall, result: Any) -> tuple[Self, float | None]:
        """Return what is known with an answer, and in how many seconds to ask again, if at all."""
        place = part.name, call.scope
        if isinstance(result, CallFailure) or not isinstance(part.source, SupportsSwitchTo):
            failures = self.failures.get(place, 0) + 1
            delay = backoff(failures, first=1.0, longest=MAX_BACKOFF)
            return replace(self, failures={**self.failures, place: failures}), delay
        found = part.source.meanings(call.call, result)
        absent = frozenset(name for name, meaning in found.items() if not meaning)
        # A server may not list a name for a moment: only the second answer counts.
        unsure = absent - self.missed.get(place, frozenset()) - self._of(*place).keys()
        sure = {name: meaning for name, meaning in found.items() if name not in unsure}
        return (
            replace(
                self._with(*place, {**sure, **self._of(*place)}),
                failures={p: n for p, n in self.failures.items() if p != place},
                missed={**self.missed, place: absent},
            ),
            CONFIRMATION if unsure else None,
        )

    def news(self, call: PartCall, result: Any) -> Exception | None:
        """Return the failure that people are told of: the first one in a row that lasts."""
        is_due = self.failures.get((call.part, call.scope)) == LASTING
        return result.error if is_due and isinstance(result, CallFailure) else None

    def of_part(self, name: str) -> Meanings:
        """Return what names of a part stood for."""
        return self.known.get(name, {})

    def without(self, name: str) -> Self:
        """Return what is known of other parts."""
        return replace(self, known={n: known for n, known in self.known.items() if n != name})

    def to_json(self) -> Json:
        """Return the JSON value of what must survive the process."""
        return {name: dict(known) for name, known in self.known.items()}

    @classmethod
    def from_json(cls, data: Any) -> Self:
        """Inverse of `to_json`."""
        return cls(known={str(name): meanings_from_json(known) for name, known in data.items()})

    def _of(self, part: str, scope: str) -> Mapping[str, str]:
        return self.of_part(part).get(scope, {})

    def _with(self, part: str, scope: str, names: Mapping[str, str]) -> Self:
        if names == self._of(part, scope):
            return self
        return replace(self, known={**self.known, part: {**self.of_part(part), scope: names}})


def looks_of(part: HybridPart) -> Iterator[PartCall]:
    """Yield the looks at a part that starts behind another one."""
    if part.start is not None and isinstance(part.source, SupportsSwitchTo):
        for call in part.source.looks().values():
            yield PartCall(part.name, part.source.kind, LOOK, call)
