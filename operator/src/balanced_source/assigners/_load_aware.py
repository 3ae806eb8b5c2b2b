"""The weighted policy: the largest load of a reader as small as can be, with few moves.

A split weighs what it costs to read (records or bytes per second, or its lag). The largest load
("makespan") decides how long a micro-batch takes, because the batch waits for its slowest reader.
"""

import bisect
import itertools
import operator
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from balanced_source.api import SplitId
from balanced_source.assigners._contract import Placement, SplitAssigner
from balanced_source.assigners._identity import AssignerIdentity, chosen
from balanced_source.assigners._moves import Holdings, Refinement, Steps, level, relabel
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
        ids = [*owned, *sorted(placement.pending)]
        table = WeightTable.of(ids, placement.weights, is_sorted=len(ids) == len(owned))
        before = _values(placement.owners, owned)
        owners: Sequence[int] = [*before, *_deal(table, before, placement.parallelism)]
        if placement.may_move and owners:
            owners = self._rebalanced(placement, table, owners)
        changed = itertools.chain(map(operator.ne, owners, before), itertools.repeat(True))
        return dict(itertools.compress(zip(table.ids, owners, strict=True), changed))

    def _rebalanced(
        self, placement: Placement, table: WeightTable, owners: Sequence[int]
    ) -> Sequence[int]:
        rebalance = _LoadSearch(placement, table, self)
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
    if len(dealt) == len(pending):
        return [dealt[i] for i in pending]
    # By number, because by weight all of them would go to one reader.
    counts = Counter([*before, *dealt.values()])
    idle = {table.ids[i]: i for i in pending if not table.weights[i]}
    spread = deal(sorted(idle), [counts[subtask] for subtask in range(n)])
    dealt |= {idle[split_id]: owner for split_id, owner in spread.items()}
    return [dealt[i] for i in pending]


class _LoadSearch:
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
        # Otherwise a reader that one heavy split keeps busy would hide all others behind the
        # largest load.
        loads = self._clipped.loads(before, self._n)
        steps, owners = self._steps(before, loads), list(before)
        self._follow(steps, self._worth(steps, max(loads), held), owners, loads)
        is_level = max(loads) <= self._goal
        largest = max(self._unclipped(loads, owners))
        # The bound holds, so the few moves are kept: dealing anew moves far more.
        if largest <= GUARANTEE * self._ceiling or largest <= GUARANTEE * self._lower_bound:
            return owners, is_level
        anew = self._from_scratch(before[:held])
        is_affordable = sum(map(operator.ne, anew, before[:held])) <= self._budget
        is_better = max(self._table.loads(anew, self._n)) < largest
        if is_affordable and is_better:
            return anew, max(self._clipped.loads(anew, self._n)) <= self._goal
        return owners, is_level

    def _follow(self, steps: Steps, count: int, owners: list[int], loads: list[int]) -> None:
        """Do the moves of the first `count` steps in `owners` and `loads`."""
        weights, moves = self._clipped.weights, zip(steps.splits, steps.owners, strict=True)
        for split, owner in itertools.islice(moves, steps.ends[count - 1] if count else 0):
            loads[owners[split]] -= weights[split]
            loads[owner] += weights[split]
            owners[split] = owner

    def _unclipped(self, loads: Sequence[int], owners: Sequence[int]) -> list[int]:
        """The loads with the whole weight of each split."""
        whole = list(loads)
        for split in self._table.heavier_than(self._ceiling):
            whole[owners[split]] += self._table.weights[split] - self._ceiling
        return whole

    @cached_property
    def _lower_bound(self) -> float:
        return lower_bound(self._table.falling, self._n)

    @property
    def _goal(self) -> int:
        return round(self._ceiling * (1 + self._assigner.tolerance))

    def _steps(self, owners: Sequence[int], loads: Sequence[int]) -> Steps:
        steps, largest = Steps(), max(loads)
        before = 2 * largest
        # Even enough: no move is worth anything.
        if largest <= self._goal:
            return steps
        held = Holdings(self._clipped, owners, loads)
        while self._goal < largest < _WORTH_ANOTHER_ROUND * before:
            level(held, steps, ceiling=self._ceiling)
            before, largest = largest, steps.largest[-1] if steps.largest else largest
        for step in Refinement(held, ceiling=self._ceiling, goal=self._goal).steps():
            steps.add(step)
        return steps

    def _worth(self, steps: Steps, largest: int, held: int) -> int:
        """How many of the first steps are affordable and worth their moves."""
        moved = _moved(steps, held)
        affordable = bisect.bisect_right(moved, self._budget)
        after = [largest, *steps.largest][:affordable]
        best = min(after)
        # Within the guarantee if any number of moves gets there, whatever they cost.
        allowed = max(GUARANTEE * self._ceiling, best)
        # What the largest load must fall by for each split that moves.
        price = self._assigner.aversion * self._ceiling / len(self._table.ids)
        costs = [largest + price * count for largest, count in zip(after, moved, strict=False)]
        # Of equal costs the first, which moves least.
        return min(
            (n for n, largest in enumerate(after) if largest <= allowed), key=costs.__getitem__
        )

    def _from_scratch(self, held: Sequence[int]) -> list[int]:
        """Deal out every split again."""
        dealt = self._table.deal(range(len(self._table.ids)), [0] * self._n)
        groups = [dealt[i] for i in range(len(dealt))]
        return relabel(groups, enumerate(held), self._n)


def _moved(steps: Steps, held: int) -> list[int]:
    """How many of the first `held` splits have moved: before the first step, and after each."""
    counts = list(itertools.accumulate(map(held.__gt__, steps.splits), initial=0))
    return [0, *map(counts.__getitem__, steps.ends)]
