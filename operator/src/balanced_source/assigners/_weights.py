"""Weights of splits as integers, the bound below which no assignment gets, and dealing by weight.

Integers make sums independent of the order of addition, so that equal questions get equal answers everywhere.
Splits are numbers here, indices into the table's columns: hashing a million ids again and again is what would cost.
"""

import heapq
import itertools
import operator
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from balanced_source.api import SplitId

RESOLUTION: Final = 1 << 40
"""The largest weight becomes this integer; the others keep their proportion to it."""


@dataclass(frozen=True, slots=True)
class WeightTable:
    """Splits and their weights, side by side."""

    ids: Sequence[SplitId]
    weights: Sequence[int]
    ranks: Sequence[int] | None = None
    """Place of each split in the order of the ids: comparing ids costs more than comparing numbers. None: its index."""

    @classmethod
    def of(cls, ids: Sequence[SplitId], weights: Mapping[SplitId, float]) -> "WeightTable":
        """Weights in no unit; a split that `weights` does not know counts as the mean of the others."""
        return cls(ids, _whole_numbers(ids, weights), _ranks(ids))

    def clipped(self, ceiling: int) -> "WeightTable":
        """The same splits, none heavier than `ceiling`."""
        if max(self.weights, default=0) <= ceiling:
            return self
        return WeightTable(self.ids, [min(ceiling, w) for w in self.weights], self.ranks)

    def heaviest_first(self, splits: Iterable[int]) -> list[int]:
        """In falling order of weight, then by id. Fastest for splits in the order of their indices."""
        rank = self.ranks
        by_id = sorted(splits) if rank is None else sorted(splits, key=rank.__getitem__)
        return sorted(by_id, key=self.weights.__getitem__, reverse=True)  # keeps the order of equal weights

    def loads(self, owners: Iterable[int], parallelism: int) -> list[int]:
        """Load of each reader, if the split at each index has the owner at that index."""
        loads = [0] * parallelism
        for weight, owner in zip(self.weights, owners, strict=False):
            loads[owner] += weight
        return loads

    def loads_after(self, moves: Iterable[tuple[int, int]], owners: Sequence[int], loads: Sequence[int]) -> list[int]:
        """Load of each reader after moves, in their order, of splits to new owners; before that, `owners` hold."""
        after, now = list(loads), dict[int, int]()
        for split, owner in moves:
            after[now.get(split, owners[split])] -= self.weights[split]
            after[owner] += self.weights[split]
            now[split] = owner
        return after

    def deal(self, splits: Iterable[int], loads: Sequence[int]) -> dict[int, int]:
        """Hand out splits, the heaviest first, to the reader with the smallest load ("LPT").

        From empty readers the largest load is within 4/3 − 1/(3n) of the optimum (R. L. Graham, "Bounds on
        multiprocessing timing anomalies", 1969).
        """
        heap = [(load, subtask) for subtask, load in enumerate(loads)]
        heapq.heapify(heap)
        owners, weights = {}, self.weights
        for split in self.heaviest_first(splits):
            load, subtask = heap[0]
            owners[split] = subtask
            heapq.heapreplace(heap, (load + weights[split], subtask))
        return owners


def _whole_numbers(ids: Sequence[SplitId], weights: Mapping[SplitId, float]) -> list[int]:
    found = list(map(weights.get, ids))
    known = [weight for weight in found if weight is not None]
    largest = max(known, default=0.0)
    if largest <= 0.0:
        return [RESOLUTION] * len(ids)
    exact = [round(weight / largest * RESOLUTION) for weight in known]
    if len(known) == len(ids):
        return exact
    mean, next_exact = sum(exact) // len(exact), iter(exact)
    return [mean if weight is None else next(next_exact) for weight in found]


def _ranks(ids: Sequence[SplitId]) -> list[int] | None:
    if all(map(operator.le, ids, itertools.islice(ids, 1, None))):
        return None
    order = sorted(range(len(ids)), key=ids.__getitem__)
    ranks = [0] * len(ids)
    for rank, split in enumerate(order):
        ranks[split] = rank
    return ranks


def lower_bound(weights: Collection[float], parallelism: int) -> float:
    """A largest load that no assignment to `parallelism` readers can beat.

    The mean load; and, because of any k·n + 1 splits some reader of n gets k + 1, the k + 1 lightest of the k·n + 1
    heaviest (k = 0: the heaviest split).
    """
    if not weights:
        return 0
    heaviest = sorted(weights, reverse=True)
    total = list(itertools.accumulate(heaviest, initial=type(heaviest[0])(0)))
    several = (total[last + 1] - total[last - last // parallelism] for last in range(0, len(heaviest), parallelism))
    return max(total[-1] / parallelism, *several)


def fair_ceiling(weights: Collection[int], parallelism: int) -> int:
    """What readers must carry besides those that a single split keeps busy.

    A split that is heavier than the mean of what is left gets a reader of its own; the bound of the rest follows.
    """
    heaviest = sorted(weights, reverse=True)
    left, alone = sum(heaviest), 0
    while alone < min(parallelism, len(heaviest)) - 1 and heaviest[alone] * (parallelism - alone) > left:
        left -= heaviest[alone]
        alone += 1
    return max(1, round(lower_bound(heaviest[alone:], parallelism - alone)))
