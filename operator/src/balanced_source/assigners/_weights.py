"""Weights of splits as integers, the bound below which no assignment gets, and dealing by weight.

Integers make sums independent of the order of addition, so that equal questions get equal answers
everywhere. Splits are numbers here, indices into the table's columns: hashing a million ids again
and again is what would cost.
"""

import heapq
import itertools
import operator
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from balanced_source.api import SplitId

RESOLUTION: Final = 1 << 40
"""The largest weight becomes this integer; the others keep their proportion to it."""

_ROUNDS: Final = float(1 << 52)
"""A float of this size has no binary place for a fraction."""

_FEW: Final = 16
"""One split of so many is sorted by itself; of more, the order of all splits serves as well."""


@dataclass(frozen=True)
class WeightTable:
    """Splits and their weights, side by side."""

    ids: Sequence[SplitId]
    weights: Sequence[int]
    by_id: Sequence[int] | None = None
    """Splits in the order of their ids: comparing ids costs more than comparing numbers.

    None: that of the indices.
    """
    presorted: tuple[Sequence[int], Sequence[int]] | None = None
    """What `order` and `falling` are, where that is known."""

    @classmethod
    def of(
        cls, ids: list[SplitId], weights: Mapping[SplitId, float], *, is_sorted: bool = False
    ) -> "WeightTable":
        """Return the table of relative weights.

        A split that `weights` lacks counts as the mean of the others.

        Args:
            ids: splits.
            weights: loads.
            is_sorted: whether `ids` are known to be in order.
        """
        by_id = None if is_sorted else _by_id(ids)
        in_order = ids if by_id is None else list(map(ids.__getitem__, by_id))
        # Mostly the loads are in the order of the ids, and no id needs to be hashed.
        if list(weights) != in_order:
            return cls(ids, _whole_numbers(list(map(weights.get, ids))), by_id)
        exact = _whole_numbers(list(weights.values()))
        return cls(ids, exact if by_id is None else _put_back(exact, by_id), by_id)

    @cached_property
    def order(self) -> Sequence[int]:
        """All splits in falling order of weight, then by id.

        Sorted once: it costs more than all that uses it.
        """
        if self.presorted is not None:
            return self.presorted[0]
        by_id = range(len(self.ids)) if self.by_id is None else self.by_id
        # Exact, because no weight exceeds `RESOLUTION`; and floats compare faster than integers.
        weights = list(map(float, self.weights))
        # keeps the order of equal weights
        return sorted(by_id, key=weights.__getitem__, reverse=True)

    @cached_property
    def falling(self) -> Sequence[int]:
        """The weights in the order of `order`."""
        if self.presorted is not None:
            return self.presorted[1]
        return list(map(self.weights.__getitem__, self.order))

    @cached_property
    def _ranks(self) -> Sequence[int]:
        if self.by_id is None:
            return range(len(self.ids))
        ranks = [0] * len(self.ids)
        for rank, split in enumerate(self.by_id):
            ranks[split] = rank
        return ranks

    def heavier_than(self, ceiling: int) -> list[int]:
        """The splits heavier than `ceiling`, the heaviest first."""
        return list(itertools.takewhile(lambda split: self.weights[split] > ceiling, self.order))

    def clipped(self, ceiling: int) -> "WeightTable":
        """Return the same splits with each weight limited to `ceiling`."""
        heavy = self.heavier_than(ceiling)
        if not heavy:
            return self
        weights = list(self.weights)
        for split in heavy:
            weights[split] = ceiling
        # Only those at the ceiling have changed places, so the rest need not be sorted again.
        equal = itertools.takewhile(lambda split: weights[split] == ceiling, self.order)
        first = sorted(equal, key=self._ranks.__getitem__)
        order = [*first, *self.order[len(first) :]]
        falling = [*itertools.repeat(ceiling, len(first)), *self.falling[len(first) :]]
        return WeightTable(self.ids, weights, self.by_id, (order, falling))

    def rank(self, split: int) -> tuple[int, int]:
        """Sort key for the reverse of `order`: the lightest first."""
        return self.weights[split], -self._ranks[split]

    def loads(self, owners: Iterable[int], parallelism: int) -> list[int]:
        """Load of each reader, if the split at each index has the owner at that index."""
        loads = [0] * parallelism
        for weight, owner in zip(self.weights, owners, strict=False):
            loads[owner] += weight
        return loads

    def deal(self, splits: Iterable[int], loads: Sequence[int]) -> dict[int, int]:
        """Hand out splits, the heaviest first, to the reader with the smallest load ("LPT").

        From empty readers the largest load is within 4/3 − 1/(3n) of the optimum (R. L. Graham,
        "Bounds on multiprocessing timing anomalies", 1969).
        """
        n, order = len(loads), self._falling(splits)
        # Load and number of a reader in one integer, which compares much faster than a tuple.
        heap = [load * n + subtask for subtask, load in enumerate(loads)]
        heapq.heapify(heap)
        weights = map(self.weights.__getitem__, order)
        owners = [heapq.heapreplace(heap, heap[0] + weight * n) % n for weight in weights]
        return dict(zip(order, owners, strict=True))

    def _falling(self, splits: Iterable[int]) -> Sequence[int]:
        chosen = frozenset(splits)
        if len(chosen) == len(self.ids):
            return self.order
        if len(chosen) > len(self.ids) // _FEW:
            return [split for split in self.order if split in chosen]
        # a few new splits among many: all of them need no order
        return sorted(chosen, key=self.rank, reverse=True)


def _whole_numbers(found: Sequence[float | None]) -> list[int]:
    known = [weight for weight in found if weight is not None]
    largest = max(known, default=0.0)
    # Nothing is known, or nothing is read: then all splits count alike.
    if largest <= 0.0:
        return [RESOLUTION] * len(found)
    # Adding and subtracting 2^52 rounds as `round` does, and much faster.
    rounded = [weight / largest * RESOLUTION + _ROUNDS - _ROUNDS for weight in known]
    exact = list(map(int, rounded))
    if len(known) == len(found):
        return exact
    # The mean of whole numbers, because a sum of floats depends on the order of addition.
    mean, next_exact = sum(exact) // len(exact), iter(exact)
    return [mean if weight is None else next(next_exact) for weight in found]


def _put_back(values: Sequence[int], by_id: Sequence[int]) -> list[int]:
    """The values of splits in the order of their ids, in that of their indices."""
    found = [0] * len(values)
    for split, value in zip(by_id, values, strict=True):
        found[split] = value
    return found


def _by_id(ids: Sequence[SplitId]) -> list[int] | None:
    # Mostly they are: a look costs far less than to sort 100,000 tuples.
    is_sorted = all(map(operator.le, ids, itertools.islice(ids, 1, None)))
    return None if is_sorted else sorted(range(len(ids)), key=ids.__getitem__)


def lower_bound(weights: Collection[float], parallelism: int) -> float:
    """Return a lower bound of the largest load, for any assignment to `parallelism` readers.

    The mean load; and, because of any k·n + 1 splits some reader of n gets k + 1, the k + 1
    lightest of the k·n + 1 heaviest (k = 0: the heaviest split).
    """
    # Where the caller has sorted them already, this costs one pass.
    heaviest = sorted(weights, reverse=True)
    return _bound(heaviest, sum(heaviest), parallelism) if heaviest else 0


def _bound(heaviest: Sequence[float], whole: float, parallelism: int) -> float:
    """See `lower_bound`: of weights in falling order, and their sum."""
    # Needed where a few heavy splits must share readers: mean and heaviest split are too low then.
    mean, lasts = whole / parallelism, range(0, len(heaviest), parallelism)
    # No sum is larger than that of as many splits of the heaviest one's weight: mostly none needs
    # to be looked at.
    if all(
        (last // parallelism + 1) * heaviest[last - last // parallelism] <= mean for last in lasts
    ):
        return mean
    total = list(itertools.accumulate(heaviest, initial=type(heaviest[0])(0)))
    return max(mean, *(total[last + 1] - total[last - last // parallelism] for last in lasts))


def fair_ceiling(weights: Collection[int], parallelism: int) -> int:
    """Return the load that readers must carry, apart from readers that a single split keeps busy.

    A split that is heavier than the mean of what is left gets a reader of its own; the bound of the
    rest follows.
    """
    heaviest = sorted(weights, reverse=True)
    left, alone = sum(heaviest), 0
    while (
        # At least one reader must be left for the rest.
        alone < min(parallelism, len(heaviest)) - 1
        and heaviest[alone] * (parallelism - alone) > left
    ):
        left -= heaviest[alone]
        alone += 1
    rest = heaviest[alone:] if alone else heaviest
    return max(1, round(_bound(rest, left, parallelism - alone) if rest else 0))
