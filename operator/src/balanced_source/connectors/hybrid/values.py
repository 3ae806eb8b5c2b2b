"""Splits, calls and parts of a hybrid source, as values."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from balanced_source.api import (
    AsyncCall,
    BoundedSplit,
    Json,
    Measure,
    Position,
    Source,
    SourceSplit,
    SplitId,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class HybridSplit(BoundedSplit):
    """A split of a part.

    Attributes:
        part: name of the part; first member of the id.
        split: as the part knows it.
    """

    part: str
    split: SourceSplit

    @property
    def split_id(self) -> SplitId:
        return (self.part, *self.split.split_id)

    @property
    def position(self) -> Position:
        return self.split.position

    @property
    def stopping_position(self) -> Position:
        return self.split.stopping_position if isinstance(self.split, BoundedSplit) else None

    @property
    def is_finished(self) -> bool:
        return isinstance(self.split, BoundedSplit) and self.split.is_finished

    def at(self, position: Position) -> Self:
        return replace(self, split=self.split.at(position))

    def attributes(self) -> Mapping[str, Json]:
        return self.split.attributes()


@dataclass(frozen=True, slots=True)
class PartCall(AsyncCall):
    """A call of a part's enumerator.

    Attributes:
        part: name of the part.
        kind: name of the part's connector, which executes the call.
        handler: name of the method of the part's enumerator that gets the result.
        call: what the connector executes.
    """

    part: str
    kind: str
    handler: str
    call: AsyncCall

    @property
    def scope(self) -> str:
        """What the call is about, for messages."""
        return str(getattr(self.call, "scope", self.part))


@dataclass(frozen=True, slots=True, kw_only=True)
class HybridPart:
    """One of the sources that are read in turn.

    Attributes:
        name: unique among the parts.
        source: what the part reads; before the last part a bounded one.
        start: what the former part measures, so that this one starts behind it; None: this one
            starts where it says.
    """

    name: str
    source: Source[Any, Any]
    start: Measure | None = None


def names_of(kinds: Sequence[str]) -> tuple[str, ...]:
    """Return the names of parts: their kinds, with a number where there are several of a kind."""
    several = {kind for kind, count in Counter(kinds).items() if count > 1}
    return tuple(
        f"{kind}-{number}" if kind in several else kind for number, kind in enumerate(kinds)
    )
