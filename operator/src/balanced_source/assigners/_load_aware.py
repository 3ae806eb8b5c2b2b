"""The weighted policy: the largest load of a reader as small as can be, with few moves.

A split weighs what it costs to read (records or bytes per second, or its lag). The largest load
("makespan") decides how long a micro-batch takes, because the batch waits for its slowest reader.
"""

import itertools
import operator
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
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
        changes, is_settled = self._placed(placement)
        if is_settled:
            return changes
        settled = {**placement.owners, **changes}
        # Steps beyond the end of the former search were not worth their moves from its start. From
        # where it ended they may be.
        for _ in range(_SEARCHES):
            changes, is_settled = self._placed(replace(placement, owners=settled, pending=()))
            settled |= changes
            if is_settled:
                break
        return {s: settled[s] for s in sorted(settled) if placement.owners.get(s) != settled[s]}

    def _placed(self, placement: Placement) -> tuple[dict[SplitId, int], bool]:
        """Return what changes, and whether another search would surely find nothing."""
        owned = sorted(placement.owners)
        table = WeightTable.of([*owned, *sorted(placement.pending)], placement.weights)
        before = [placement.owners[s] for s in owned]
        owners: Sequence[int] = [*before, *_deal(table, before, placement.parallelism)]
        is_settled = True
        if placement.may_move and owners:
            found = _Rebalance(placement, table, owners, self)
            after, is_level = found.solve()
            # With a limit, another search would move more than the limit allows.
            is_settled = placement.max_moves is not None or after == owners or is_level
            owners = after
        changed = itertools.chain(map(operator.ne, owners, before), itertools.repeat(True))
        return dict(itertools.compress(zip(table.ids, owners, strict=True), changed)), is_settled


def _deal(table: WeightTable, before: Sequence[int], n: int) -> list[int]:
    """Owners of the splits behind those in `before`.

    Those without weight are spread by their number.
    """
    pending = range(len(before), len(table.ids))
    dealt = table.deal([i for i in pending if table.weights[i]], table.loads(before, n))
    # By number, because by weight all of them would go to one reader.
    counts = Counter([*before, *dealt.values()])
    idle = {table.ids[i]: i for i in pending if not table.weights[i]}
    spread = deal(sorted(idle), [counts[subtask] for subtask in range(n)])
    dealt |= {idle[split_id]: owner for split_id, owner in spread.items()}
    return [dealt[i] for i in pending]


class _Rebalance:
    """One rebalance.

    The weight of a split that keeps a reader busy alone is cut to a fair share: its reader counts
    as full, and the others are balanced all the same.
    """

    def __init__(
        self,
        placement: Placement,
        table: WeightTable,
        owners: Sequence[int],
        assigner: LoadAwareAssigner,
    ) -> None:
        self._n = placement.parallelism
        self._owners = owners
        self._assigner = assigner
        self._table = table
        self._falling = [table.weights[split] for split in table.order]
        self._ceiling = fair_ceiling(self._falling, self._n)
        self._clipped = table.clipped(self._ceiling)
        self._unclipped_loads = table.loads(owners, self._n)
        self._loads = list(self._unclipped_loads)
        # Otherwise a reader that one heavy split keeps busy would hide all others behind the
        # largest load.
        for split in table.heavier_than(self._ceiling):
            self._loads[owners[split]] -= table.weights[split] - self._ceiling
        self._largest = max(self._loads)
        self._held = len(placement.owners)
        self._budget = len(owners) if placement.max_moves is None else placement.max_moves

    def solve(self) -> tuple[Sequence[int], bool]:
        """Return the owners, and whether every reader is within the tolerance of its fair share."""
        moves = [move for step in self._worth(self._steps()) for move in step.moves]
        owners = _after(self._owners, moves)
        is_level = max(self._clipped.loads_after(moves, self._owners, self._loads)) <= self._goal
        largest = max(self._table.loads_after(moves, self._owners, self._unclipped_loads))
        # The bound holds, so the few moves are kept: dealing again moves far more.
        if largest <= GUARANTEE * self._ceiling or largest <= GUARANTEE * lower_bound(
            self._falling, self._n
        ):
            return owners, is_level
        anew = self._from_scratch()
        is_affordable = sum(anew[i] != self._owners[i] for i in range(self._held)) <= self._budget
        is_better = max(self._table.loads(anew, self._n)) < largest
        if is_affordable and is_better:
            return anew, max(self._clipped.loads(anew, self._n)) <= self._goal
        return owners, is_level

    @property
    def _goal(self) -> int:
        return round(self._ceiling * (1 + self._assigner.tolerance))

    def _steps(self) -> list[Step]:
        largest, before = self._largest, 2 * self._largest
        # Even enough: no move is worth anything.
        if largest <= self._goal:
            return []
        held = Holdings(self._clipped, self._owners, self._loads)
        steps: list[Step] = []
        while self._goal < largest < _WORTH_ANOTHER_ROUND * before:
            more = level(held, ceiling=self._ceiling)
            steps += more
            before, largest = largest, more[-1].largest if more else largest
        return [*steps, *Refinement(held, ceiling=self._ceiling, goal=self._goal).steps()]

    def _worth(self, steps: Sequence[Step]) -> Sequence[Step]:
        """The first steps, as many as are affordable and worth their moves."""
        choices = list(self._choices(steps))
        best = min(largest for _, largest, _ in choices)
        # Within the guarantee if any number of moves gets there, whatever they cost.
        allowed = [
            choice for choice in choices if choice[1] <= max(GUARANTEE * self._ceiling, best)
        ]
        # What the largest load must fall by for each split that moves.
        price = self._assigner.aversion * self._ceiling / len(self._owners)
        return steps[
            : min(allowed, key=lambda choice: (choice[1] + price * choice[2], choice[2]))[0]
        ]

    def _choices(self, steps: Sequence[Step]) -> Iterator[tuple[int, int, int]]:
        """(Number of steps, largest load after them, splits that have moved by then)."""
        yield 0, self._largest, 0
        moved = 0
        for number, step in enumerate(steps, 1):
            # A pending split needs an owner anyway, so it counts as no move.
            moved += sum(split < self._held for split, _ in step.moves)
            if moved > self._budget:
                return
            yield number, step.largest, moved

    def _from_scratch(self) -> list[int]:
        """Everything dealt again."""
        dealt = self._table.deal(range(len(self._owners)), [0] * self._n)
        groups = [dealt[i] for i in range(len(dealt))]
        return relabel(groups, enumerate(self._owners[: self._held]), self._n)


def _after(owners: Sequence[int], moves: Iterable[Move]) -> list[int]:
    changed = list(owners)
    for split, owner in moves:
        changed[split] = owner
    return changed
