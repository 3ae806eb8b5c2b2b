"""Lists of numbers that are read part after part, in the world of `support.pull_world`.

Any step may be the last.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from balanced_source.api import (
    STOP,
    AsyncCall,
    Boundedness,
    Measure,
    Position,
    RebalancePolicy,
    SplitId,
    SupportsSplitReassignmentOnRecovery,
    SupportsSwitchFrom,
    SupportsSwitchTo,
    SwitchPosition,
)
from balanced_source.assigners import RoundRobinAssigner, SplitAssigner
from balanced_source.connectors.discovery import Discover, Discovered, DiscoveringSource, Initialize
from balanced_source.connectors.hybrid import HybridSource, PartCall, checked_hybrid
from balanced_source.connectors.pull import PullState
from balanced_source.coordinator import SourceCoordinator
from support.pull_source import NumberLists, Numbers
from support.pull_values import World
from support.pull_world import Model

TIME = Measure(time="number")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListAll(Discover):
    """List all of them."""

    scope: str
    round: int
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Begin(Initialize):
    """Say how long they are."""

    scope: str
    split_ids: tuple[SplitId, ...]
    length: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignedLists(DiscoveringSource[Numbers], SupportsSplitReassignmentOnRecovery):
    """Lists that are assigned without being asked for, as partitions of topics are."""

    count: int
    length: int = 1
    assigner: SplitAssigner = field(default_factory=RoundRobinAssigner)
    rebalance_policy: RebalancePolicy = field(default_factory=RebalancePolicy)
    discovery_interval: float | None = None
    failure_threshold: int = 1
    may_lose: bool = False
    retention: float = 0.0

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    @property
    def stops(self) -> Mapping[str, int]:
        return {f"list-{number}": self.length for number in range(self.count)}

    def scopes(self) -> tuple[str, ...]:
        return ("lists",)

    def scope_of(self, split_id: SplitId) -> str:
        return "lists"

    def subscribes(self, split_id: SplitId) -> bool:
        return True

    def discover(self, scope: str, round_number: int) -> ListAll:
        return ListAll(scope=scope, round=round_number, count=self.count)

    def initialize(self, scope: str, split_ids: Collection[SplitId], *, is_first: bool) -> Begin:
        return Begin(scope=scope, split_ids=tuple(sorted(split_ids)), length=self.length)

    def create_split(
        self, split_id: SplitId, position: Position, attributes: Mapping[str, Any]
    ) -> Numbers:
        return Numbers(name=str(split_id[1]), number=int(position or 0), stop=int(attributes[STOP]))


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredLists(NumberLists, SupportsSwitchFrom, SupportsSwitchTo):
    """Lists whose longest one says how many numbers the next part skips.

    Attributes:
        is_measured: whether the next part needs that.
    """

    is_measured: bool = False

    def measuring(self, measure: Measure, *, field: str) -> Self:
        return replace(self, is_measured=True)

    def switch_position(self, state: PullState[Numbers]) -> SwitchPosition:
        return SwitchPosition(time=max(self.stops.values(), default=3))

    def check_switch(self, measure: Measure, *, field: str) -> None:
        pass

    def starting_after(self, position: SwitchPosition) -> Self:
        return replace(self, length=self.length + (position.time or 0))


def two_parts(first: int, second: int, *, length: int = 1, ahead: int = 1) -> HybridSource:
    """Return a source of two parts with so many lists.

    The second part begins where the first was measured.
    """
    return checked_hybrid(
        [
            (MeasuredLists(count=first, length=length, ahead=ahead), None),
            (MeasuredLists(count=second, length=0, ahead=ahead), TIME),
        ],
        field="parts",
    )


def answer(call: AsyncCall) -> Any:
    """Return what the outside world answers: the scope of a listing says what is listed."""
    assert isinstance(call, PartCall)
    match call.call:
        case ListAll(count=count):
            return Discovered(
                split_ids=frozenset(("lists", f"list-{number}") for number in range(count))
            )
        case Begin(split_ids=split_ids, length=length):
            return [Numbers(name=str(name), stop=length) for _, name in split_ids]
        case _:
            pass
    count, length = map(int, call.scope.split("x"))
    return NumberLists(count=count, length=length).execute(call.call)


class HybridModel(Model):
    """A world with a rule more.

    Nothing of a part is read before everything of the former parts is delivered.
    """

    def execute(self, call: AsyncCall) -> Any:
        return answer(call)

    def wanted(self) -> Mapping[SplitId, int]:
        position, found = SwitchPosition(), dict[SplitId, int]()
        for number, part in enumerate(self.source.parts):
            lists: Any = self.source.started(number, position)
            found |= {(part.name, "lists", name): stop for name, stop in lists.stops.items()}
            measured = isinstance(lists, MeasuredLists)
            position = lists.switch_position(PullState()) if measured else SwitchPosition()
        return found

    def _hoarded(self, world: World, coordinator: SourceCoordinator[Any, Any]) -> str | None:
        """Splits that are assigned are not asked for, so no reader can have too many of them."""
        is_asked = all(part.source.look_ahead for part in self.source.parts)
        return super()._hoarded(world, coordinator) if is_asked else None

    def unsettled(self, world: World) -> list[str]:
        """Splits that are assigned stay in the state when they are read.

        Those that are asked for leave it.
        """
        found = super().unsettled(world)
        keeps = self.source.parts[-1].source.look_ahead == 0
        return [what for what in found if not (keeps and "stay in the state" in what)]

    def _committed(self, world: World) -> World:
        before, after = dict(world.delivered), super()._committed(world)
        wanted, names = self.wanted(), self.source.names
        for split_id in dict(after.delivered):
            former = names[: names.index(str(split_id[0]))]
            missing = [
                s for s, stop in wanted.items() if s[0] in former and before.get(s, 0) < stop
            ]
            if missing and dict(after.delivered)[split_id] > before.get(split_id, 0):
                return replace(
                    after, problem=f"{split_id} is read, and {missing[0]} is not delivered"
                )
        return after
