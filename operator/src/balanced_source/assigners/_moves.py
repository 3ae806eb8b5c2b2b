"""Lowering the largest load by moving splits: which ones, and in which order they are worth it.

Splits are indices into a `WeightTable`; `owners` has the reader of each.
"""

import bisect
import heapq
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from balanced_source.assigners._weights import WeightTable

_PARTNERS: Final = 4
"""How many of the least loaded readers are tried as partner of the fullest one."""

_SLACK: Final = 10
"""A taker may come above its giver by one tenth of the ceiling: the local search makes up for it.
"""

Move = tuple[int, int]
"""A split and its new owner."""


@dataclass(frozen=True, slots=True)
class Step:
    """Moves that make sense only together, and the largest load after them."""

    moves: tuple[Move, ...]
    largest: int


class Holdings:
    """Tracks which reader holds which splits, and the load of each reader, move by move.

    Args:
        table: weights.
        owners: reader of each split.
        loads: of each reader.
    """

    def __init__(self, table: WeightTable, owners: Sequence[int], loads: Sequence[int]) -> None:
        self.table = table
        self.loads = list(loads)
        self.splits: list[list[int]] = [[] for _ in loads]
        """Those of each reader, the lightest first."""
        for split in reversed(table.order):
            self.splits[owners[split]].append(split)

    def move(self, split: int, giver: int, taker: int) -> None:
        """Move one split to another reader."""
        self.splits[giver].remove(split)
        bisect.insort(self.splits[taker], split, key=self.table.rank)
        self._carry(split, giver, taker)

    def move_all(self, moves: Mapping[int, Sequence[Move]]) -> None:
        """Let many splits change their readers: reader → what it gives.

        Each split is given once.
        """
        for giver, given in moves.items():
            # One pass per giver: to remove splits one by one would look through its list for each.
            gone = frozenset(split for split, _ in given)
            self.splits[giver] = [split for split in self.splits[giver] if split not in gone]
            for split, taker in given:
                bisect.insort(self.splits[taker], split, key=self.table.rank)
                self._carry(split, giver, taker)

    def _carry(self, split: int, giver: int, taker: int) -> None:
        self.loads[giver] -= self.table.weights[split]
        self.loads[taker] += self.table.weights[split]


def level(held: Holdings, *, ceiling: int) -> list[Step]:
    """Return steps that move splits from readers above `ceiling` to readers below it.

    Applies them to `held`.

    Few splits move, because the heaviest go first that bring the giver nearer to the ceiling
    without lifting the taker far above the giver. In the order of the steps the largest load falls
    as fast as it can.
    """
    loads, weights = list(held.loads), held.table.weights
    takers = [(load, subtask) for subtask, load in enumerate(loads) if load < ceiling]
    heapq.heapify(takers)
    # The fullest first: it needs the emptiest readers most.
    givers = sorted(
        (s for s, load in enumerate(loads) if load > ceiling), key=lambda s: (-loads[s], s)
    )
    moves = {
        giver: _give(reversed(held.splits[giver]), weights, loads[giver], ceiling, takers)
        for giver in givers
    }
    held.move_all(moves)
    return list(_fullest_first(moves, weights, loads))


def _give(
    splits: Iterable[int],
    weights: Sequence[int],
    load: int,
    ceiling: int,
    takers: list[tuple[int, int]],
) -> list[Move]:
    """What one reader gives; `takers` is a heap of (load, reader), which is kept up to date."""
    moves: list[Move] = []
    slack = ceiling // _SLACK
    for split in splits:
        # The emptiest reader is at the ceiling, so the others are, too.
        if not takers or takers[0][0] >= ceiling or load <= ceiling:
            break
        weight = weights[split]
        filled, taker = takers[0]
        # A move that lifts the taker above the giver's former load only exchanges the two.
        is_useful = 0 < weight < min(2 * (load - ceiling), load - filled)
        # The heaviest first, unless it makes the taker the fuller one by more than a search mends.
        if is_useful and 2 * weight <= load - filled + slack:
            heapq.heapreplace(takers, (filled + weight, taker))
            moves.append((split, taker))
            load -= weight
    return moves


def _fullest_first(
    moves: Mapping[int, Sequence[Move]], weights: Sequence[int], loads: Sequence[int]
) -> Iterator[Step]:
    """The moves in such an order that always the reader that is fullest by then gives next."""
    now = list(loads)
    # Readers that give nothing bound how far the largest load can fall.
    peak = max((load for subtask, load in enumerate(loads) if subtask not in moves), default=0)
    ready = [(-loads[giver], giver, 0) for giver in moves if moves[giver]]
    heapq.heapify(ready)
    stuck = max((loads[giver] for giver in moves if not moves[giver]), default=0)
    while ready:
        _, giver, number = ready[0]
        split, taker = moves[giver][number]
        now[giver] -= weights[split]
        now[taker] += weights[split]
        peak = max(peak, now[taker])
        if number + 1 < len(moves[giver]):
            heapq.heapreplace(ready, (-now[giver], giver, number + 1))
        else:
            heapq.heappop(ready)
            stuck = max(stuck, now[giver])
        yield Step(((split, taker),), max(peak, stuck, -ready[0][0] if ready else 0))


class Refinement:
    """Local search: the busiest reader gives a split to a reader with little load, or swaps two.

    It starts at `held`, which follows it, and ends when the largest load is at most `goal`. Readers
    at or above `ceiling` take nothing.
    """

    def __init__(self, held: Holdings, *, ceiling: int, goal: int) -> None:
        self._held = held
        self._loads = held.loads
        self._ceiling = ceiling
        self._goal = goal

    def steps(self) -> Iterator[Step]:
        """At most a few per reader; each lowers the load of the fullest reader."""
        for _ in range(4 * len(self._loads) + 16):
            fullest = max(
                range(len(self._loads)), key=lambda subtask: (self._loads[subtask], -subtask)
            )
            found = self._best_step(fullest) if self._loads[fullest] > self._goal else None
            if found is None:
                return
            yield found

    def _best_step(self, fullest: int) -> Step | None:
        order = sorted(range(len(self._loads)), key=lambda subtask: (self._loads[subtask], subtask))
        best: tuple[int, int, int, int | None] | None = None
        for partner in order[:_PARTNERS]:
            found = (
                self._exchange(fullest, partner) if self._loads[partner] < self._ceiling else None
            )
            if found is not None and (best is None or found[0] < best[0]):
                best = (found[0], partner, found[1], found[2])
        return None if best is None else self._apply(fullest, *best[1:])

    def _exchange(self, fullest: int, partner: int) -> tuple[int, int, int | None] | None:
        """The gift or swap after which the larger of the two loads is smallest.

        None if none lowers it.
        """
        high, low, weight_of = (
            self._loads[fullest],
            self._loads[partner],
            self._held.table.weights.__getitem__,
        )
        given, partners = self._held.splits[fullest], self._held.splits[partner]
        returned = [0, *map(weight_of, partners)]  # the first stands for a gift
        # Both lists are sorted, so one walk over both finds the best pair without trying all of
        # them.
        largest, found, half, at, count = high, None, (high - low) // 2, 0, len(returned)
        for split, weight in zip(given, map(weight_of, given), strict=True):
            while at < count and returned[at] < weight - half:
                at += 1  # from here on the fullest stays the larger of the two
            if at and low + weight - returned[at - 1] < largest:
                largest, found = low + weight - returned[at - 1], (split, at - 1)
            if at < count and high - weight + returned[at] < largest:
                largest, found = high - weight + returned[at], (split, at)
        if found is None:
            return None
        return largest, found[0], partners[found[1] - 1] if found[1] else None

    def _apply(self, fullest: int, partner: int, given: int, back: int | None) -> Step:
        moves = [(given, partner)]
        self._held.move(given, fullest, partner)
        if back is not None:
            moves.append((back, fullest))
            self._held.move(back, partner, fullest)
        return Step(tuple(moves), max(self._loads))


def relabel(dealt: Sequence[int], held: Iterable[tuple[int, int]], parallelism: int) -> list[int]:
    """Return the owners when each group of splits goes to the reader that already has most of it.

    Args:
        dealt: group of each split.
        held: (split, reader) of those that have a reader.
        parallelism: number of groups and readers.
    """
    common: dict[tuple[int, int], int] = defaultdict(int)
    for split, owner in held:
        common[dealt[split], owner] += 1
    label: dict[int, int] = {}
    taken: set[int] = set()
    # The largest overlap first, so that as few splits as possible change their reader.
    for group, owner in sorted(common, key=lambda pair: (-common[pair], pair)):
        if group not in label and owner not in taken:
            label[group] = owner
            taken.add(owner)
    free = iter(sorted(set(range(parallelism)) - taken))
    label |= {group: next(free) for group in range(parallelism) if group not in label}
    return [label[group] for group in dealt]
