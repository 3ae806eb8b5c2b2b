"""The weighted policy: the largest load of a reader as small as can be, with few moves.

A split weighs what it costs to read (records or bytes per second, or its lag). The largest load
("makespan") decides how long a micro-batch takes, because the batch waits for its slowest reader.
"""

import itertools
import operator
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from balanced_source.api import SplitId
from balanced_source.assigners._contract import Placement, SplitAssigner
from balanced_source.assigners._identity import AssignerIdentity, chosen
from balanced_source.assigners._moves import Holdings, Move, Refinement, Step, level, relabel
from balanced_source.assigners._round_robin import deal
from balanced_source.assigners._weights import WeightTable, fair_ceiling, lower_bound

GUARANTEE: Final = 4 / 3
"""An assignment that may move everything is within this factor of the optimum."""

_SEARCHES: Final = 8
"""Searches from where the last one ended: each must lower the largest load by what its moves are
worth."""

_WORTH_ANOTHER_ROUND: Final = 0.99
"""Readers above their fair share give in rounds, as long as the largest load falls by as much."""


@dataclass(frozen=True)
class LoadAwareAssigner(SplitAssigner):
    """Balance the weights of `Placement`.

    Pending splits go, the heaviest first, to the least loaded reader. Where splits may move:

    1. readers above their fair share give to those below it, the heaviest splits that fit first;
    2. a local search of gifts and swaps removes what remains above `tolerance`;
    3. if the bound of 4/3 is not shown to hold by then, everything is dealt again, and readers get
       the group of which they have most;
    4. of these steps only as many are done as are worth their moves, and as `Placement.max_moves`
       allows;
    5. if that ends above `tolerance`, the search begins again from there, until it finds nothing
       more.

    The lower bound is max(mean, heaviest split), or better where several heavy splits must share a
    reader. Where one split is heavier than the mean, the others are balanced over the other
    readers.

    Attributes:
        tolerance: what the largest load may exceed the lower bound by, as a fraction of it.
        aversion: what the largest load must fall by, as a fraction of the lower bound, if all
            splits were to move; half of them must gain half of that, and so on.
    """

    tolerance: float = 0.01
    aversion: float = 0.02

    @property
    def uses_weights(self) -> bool:
        return True

    @property
    def identity(self) -> AssignerIdentity:
        return AssignerIdentity(name="LoadAware", parameters=chosen(self))

    def place(self, placement: Placement) -> dict[SplitId, int]:
        """Return the least loaded reader for each pending split.

        If splits may move, see the class.
        """
        owned = sorted(placement.owners)
        table = WeightTable.of([*owned, *sorted(placement.pending)], placement.weights)
        before = _values(placement.owners, owned)
        owners: Sequence[int] = [*before, *_deal(table, before, placement.parallelism)]
        if placement.may_move and owners:
            owners = self._rebalanced(placement, table, owners)
        changed = itertools.chain(map(operator.ne, owners, before), itertools.repeat(True))
        return dict(itertools.compress(zip(table.ids, owners, strict=True), changed))

    def _rebalanced(
        self, placement: Placement, table: WeightTable, owners: Sequence[int]
    ) -> Sequence[int]:
        rebalance = _Rebalance(placement, table, self)
        # Steps beyond the end of the former search were not worth their moves from its start. From
        # where it ended they may be.
        for number in range(_SEARCHES + 1):
            before = owners
            # A pending split needs an owner anyway, so it counts as no move at first.
            held = len(owners) if number else len(placement.owners)
            owners, is_level = rebalance.solve(before, held)
            # With a limit, another search would move more than the limit allows.
            if placement.max_moves is not None or is_level or owners == before:
                break
        return owners


def _values(owners: Mapping[SplitId, int], ids: Sequence[SplitId]) -> list[int]:
    """Owners in the order of `ids`."""
    # Mostly that is the order of the table, and no id needs to be hashed.
    if list(owners) == ids:
        return list(owners.values())
    return list(map(owners.__getitem__, ids))


def _deal(table: WeightTable, before: Sequence[int], n: int) -> list[int]:
    """Owners of the splits behind those in `before`.

    Those without weight are spread by their number.
    """
    pending = range(len(before), len(table.ids))
    # A rescale to more readers leaves nothing pending: the loads need not be added up.
    if not pending:
        return []
    dealt = table.deal([i for i in pending if table.weights[i]], table.loads(before, n))
    # By number, because by weight all of them would go to one reader.
    counts = Counter([*before, *dealt.values()])
    idle = {table.ids[i]: i for i in pending if not table.weights[i]}
    spread = deal(sorted(idle), [counts[subtask] for subtask in range(n)])
    dealt |= {idle[split_id]: owner for split_id, owner in spread.items()}
    return [dealt[i] for i in pending]


class _Rebalance:
    """One rebalance, in several searches.

    The weight of a split that keeps a reader busy alone is cut to a fair share: its reader counts
    as full, and the others are balanced all the same.
    """

    def __init__(
        self, placement: Placement, table: WeightTable, assigner: LoadAwareAssigner
    ) -> None:
        self._n = placement.parallelism
        self._assigner = assigner
        self._table = table
        self._ceiling = fair_ceiling(table.falling, self._n)
        self._clipped = table.clipped(self._ceiling)
        self._budget = len(table.ids) if placement.max_moves is None else placement.max_moves

    def solve(self, before: Sequence[int], held: int) -> tuple[Sequence[int], bool]:
        """Return the owners, and whether every reader is within the tolerance of its fair share.

        Args:
            before: owners before this search.
            held: the first splits, whose moves count.
        """
        unclipped_loads = self._table.loads(before, self._n)
        loads = list(unclipped_loads)
        # Otherwise a reader that one heavy split keeps busy would hide all others behind the
        # largest load.
        for split in self._table.heavier_than(self._ceiling):
            loads[before[split]] -= self._table.weights[split] - self._ceiling
        steps = self._worth(self._steps(before, loads), max(loads), held)
        moves = [move for step in steps for move in step.moves]
        owners = _after(before, moves)
        is_level = max(self._clipped.loads_after(moves, before, loads)) <= self._goal
        largest = max(self._table.loads_after(moves, before, unclipped_loads))
        # The bound holds, so the few moves are kept: dealing anew moves far more.
        if largest <= GUARANTEE * self._ceiling or largest <= GUARANTEE * self._lower_bound:
            return owners, is_level
        anew = self._from_scratch(before[:held])
        is_affordable = sum(map(operator.ne, anew, before[:held])) <= self._budget
        is_better = max(self._table.loads(anew, self._n)) < largest
        if is_affordable and is_better:
            return anew, max(self._clipped.loads(anew, self._n)) <= self._goal
        return owners, is_level

    @cached_property
    def _lower_bound(self) -> float:
        return lower_bound(self._table.falling, self._n)

    @property
    def _goal(self) -> int:
        return round(self._ceiling * (1 + self._assigner.tolerance))

    def _steps(self, owners: Sequence[int], loads: Sequence[int]) -> list[Step]:
        largest = max(loads)
        before = 2 * largest
        # Even enough: no move is worth anything.
        if largest <= self._goal:
            return []
        held = Holdings(self._clipped, owners, loads)
        steps: list[Step] = []
        while self._goal < largest < _WORTH_ANOTHER_ROUND * before:
            more = level(held, ceiling=self._ceiling)
            steps += more
            before, largest = largest, more[-1].largest if more else largest
        return [*steps, *Refinement(held, ceiling=self._ceiling, goal=self._goal).steps()]

    def _worth(self, steps: Sequence[Step], largest: int, held: int) -> Sequence[Step]:
        """The first steps, as many as are affordable and worth their moves."""
        choices = [(0, largest, 0), *self._choices(steps, held)]
        best = min(largest for _, largest, _ in choices)
        # Within the guarantee if any number of moves gets there, whatever they cost.
        allowed = max(GUARANTEE * self._ceiling, best)
        # What the largest load must fall by for each split that moves.
        price = self._assigner.aversion * self._ceiling / len(self._table.ids)
        costs = (
            (largest + price * moved, moved, number)
            for number, largest, moved in choices
            if largest <= allowed
        )
        return steps[: min(costs)[2]]

    def _choices(self, steps: Sequence[Step], held: int) -> Iterator[tuple[int, int, int]]:
        """(Number of steps, largest load after them, splits that have moved by then)."""
        moved = 0
        for number, step in enumerate(steps, 1):
            for split, _ in step.moves:
                moved += split < held
            if moved > self._budget:
                return
            yield number, step.largest, moved

    def _from_scratch(self, held: Sequence[int]) -> list[int]:
        """Deal out every split again."""
        dealt = self._table.deal(range(len(self._table.ids)), [0] * self._n)
        groups = [dealt[i] for i in range(len(dealt))]
        return relabel(groups, enumerate(held), self._n)


def _after(owners: Sequence[int], moves: Iterable[Move]) -> list[int]:
    changed = list(owners)
    for split, owner in moves:
        changed[split] = owner
    return changed
