"""Lists of numbers whose readers ask for them: the smallest source with pull assignment."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from balanced_source.api import STOP, AsyncCall, BoundedSplit, Position, SplitId
from balanced_source.connectors.pull import ListSplits, PullSource


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers(BoundedSplit):
    """The numbers from `number` up to but without `stop`."""

    name: str
    number: int = 0
    stop: int = 2

    @property
    def split_id(self) -> SplitId:
        return ("lists", self.name)

    @property
    def position(self) -> Position:
        return self.number

    @property
    def stopping_position(self) -> Position:
        return self.stop

    def at(self, position: Position) -> Self:
        return replace(self, number=int(position or 0))

    def attributes(self) -> Mapping[str, Any]:
        return {STOP: self.stop}


@dataclass(frozen=True, slots=True, kw_only=True)
class ListNumbers(ListSplits):
    """List all of them."""

    scope: str
    round: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberLists(PullSource[Numbers]):
    """Some lists.

    Attributes:
        count: number of lists.
        length: numbers of the first.
        growth: numbers that each list has more than the one before.
        ahead: splits that a host asks for ahead.
        may_repeat: see `SplitListing`.
        near: list → host that it is near to.
        zones: list → zone that it lies in.
    """

    count: int = 3
    length: int = 2
    growth: int = 0
    ahead: int = 1
    may_repeat: bool = False
    near: tuple[tuple[str, str], ...] = ()
    zones: tuple[tuple[str, str], ...] = ()

    @property
    def look_ahead(self) -> int:
        return self.ahead

    @property
    def has_locations(self) -> bool:  # type: ignore[override] # a value derives it
        return bool(self.near or self.zones)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"list-{number}" for number in range(self.count))

    @property
    def stops(self) -> Mapping[str, int]:
        """List → how many numbers it has."""
        return {name: self.length + number * self.growth for number, name in enumerate(self.names)}

    def list_splits(self, round_number: int) -> ListNumbers:
        return ListNumbers(scope=f"{self.count}x{self.length}", round=round_number)

    def is_near(self, split: Numbers, host: str) -> bool:
        return (split.name, host) in self.near

    def is_in_zone(self, split: Numbers, zone: str) -> bool:
        return (split.name, zone) in self.zones

    def create_split(
        self, split_id: SplitId, position: Position, attributes: Mapping[str, Any]
    ) -> Numbers:
        return Numbers(name=str(split_id[1]), number=int(position or 0), stop=int(attributes[STOP]))

    def execute(self, call: AsyncCall) -> list[Numbers]:
        """What the outside world answers."""
        assert isinstance(call, ListNumbers)
        return [Numbers(name=name, stop=stop) for name, stop in self.stops.items()]
