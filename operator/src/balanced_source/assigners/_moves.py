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

    Splits are named by their places in the table's order here: places are sorted and found without
    a look at the weights.

    Args:
        table: weights.
        owners: reader of each split.
        loads: of each reader.
    """

    def __init__(self, table: WeightTable, owners: Sequence[int], loads: Sequence[int]) -> None:
        self.order = table.order
        self.weights = table.falling
        """Of the split at each place."""
        self.loads = list(loads)
        self.places: list[list[int]] = [[] for _ in loads]
        """Of the splits of each reader, the heaviest first."""
        appends = [places.append for places in self.places]
        for place, owner in enumerate(map(owners.__getitem__, self.order)):
            appends[owner](place)

    def move(self, place: int, giver: int, taker: int) -> None:
        """Move one split to another reader."""
        places = self.places[giver]
        del places[bisect.bisect_left(places, place)]
        self._take(place, giver, taker)

    def move_all(self, moves: Mapping[int, Sequence[Move]]) -> None:
        """Let many splits change their readers: reader → places that it gives, and to whom.

        Each split is given once.
        """
        for giver, given in moves.items():
            # One pass per giver: to remove splits one by one would look through its list for each.
            gone = frozenset(place for place, _ in given)
            self.places[giver] = [place for place in self.places[giver] if place not in gone]
            for place, taker in given:
                self._take(place, giver, taker)

    def _take(self, place: int, giver: int, taker: int) -> None:
        bisect.insort(self.places[taker], place)
        self.loads[giver] -= self.weights[place]
        self.loads[taker] += self.weights[place]


def level(held: Holdings, *, ceiling: int) -> list[Step]:
    """Return steps that move splits from readers above `ceiling` to readers below it.

    Applies them to `held`.

    Few splits move, because the heaviest go first that bring the giver nearer to the ceiling
    without lifting the taker far above the giver. In the order of the steps the largest load falls
    as fast as it can.
    """
    loads, weights = list(held.loads), held.weights
    takers = [(load, subtask) for subtask, load in enumerate(loads) if load < ceiling]
    heapq.heapify(takers)
    # The fullest first: it needs the emptiest readers most.
    givers = sorted(
        (s for s, load in enumerate(loads) if load > ceiling), key=lambda s: (-loads[s], s)
    )
    moves = {
        giver: _give(held.places[giver], weights, loads[giver], ceiling, takers) for giver in givers
    }
    held.move_all(moves)
    return [
        Step(((held.order[place], taker),), largest)
        for place, taker, largest in _fullest_first(moves, weights, loads)
    ]


def _give(
    places: Iterable[int],
    weights: Sequence[int],
    load: int,
    ceiling: int,
    takers: list[tuple[int, int]],
) -> list[Move]:
    """What one reader gives; `takers` is a heap of (load, reader), which is kept up to date."""
    moves: list[Move] = []
    slack = ceiling // _SLACK
    for place in places:
        # The emptiest reader is at the ceiling, so the others are, too.
        if not takers or takers[0][0] >= ceiling or load <= ceiling:
            break
        weight = weights[place]
        filled, taker = takers[0]
        # A move that lifts the taker above the giver's former load only exchanges the two.
        is_useful = 0 < weight < min(2 * (load - ceiling), load - filled)
        # The heaviest first, unless it makes the taker the fuller one by more than a search mends.
        if is_useful and 2 * weight <= load - filled + slack:
            heapq.heapreplace(takers, (filled + weight, taker))
            moves.append((place, taker))
            load -= weight
    return moves


def _fullest_first(
    moves: Mapping[int, Sequence[Move]], weights: Sequence[int], loads: Sequence[int]
) -> Iterator[tuple[int, int, int]]:
    """The moves in such an order that always the reader that is fullest by then gives next.

    Yields place, taker and the largest load after the move.
    """
    now = list(loads)
    # Readers that give nothing bound how far the largest load can fall.
    peak = max((load for subtask, load in enumerate(loads) if subtask not in moves), default=0)
    ready = [(-loads[giver], giver, 0) for giver in moves if moves[giver]]
    heapq.heapify(ready)
    stuck = max((loads[giver] for giver in moves if not moves[giver]), default=0)
    while ready:
        _, giver, number = ready[0]
        place, taker = moves[giver][number]
        now[giver] -= weights[place]
        now[taker] += weights[place]
        peak = max(peak, now[taker])
        if number + 1 < len(moves[giver]):
            heapq.heapreplace(ready, (-now[giver], giver, number + 1))
        else:
            heapq.heappop(ready)
            stuck = max(stuck, now[giver])
        yield place, taker, max(peak, stuck, -ready[0][0] if ready else 0)


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
        high, low = self._loads[fullest], self._loads[partner]
        given, weights = self._lightest_first(fullest)
        back, returned = self._lightest_first(partner)
        half = (high - low) // 2
        # Of those that weigh at most half of the difference, the heaviest is the best gift: no swap
        # brings the two nearer than that.
        gifts = bisect.bisect_right(weights, half)
        heaviest = weights[gifts - 1] if gifts else 0
        largest, found = high - heaviest, None
        if heaviest:
            found = (given[bisect.bisect_left(weights, heaviest)], 0)
        # Both lists are sorted, so one walk over the rest finds the best pair without trying all.
        returned, at, count = [0, *returned], 0, len(returned) + 1  # the first stands for a gift
        for place, weight in zip(given[gifts:], weights[gifts:], strict=True):
            least = weight - half
            while at < count and returned[at] < least:
                at += 1  # from here on the fullest stays the larger of the two
            if at and low + weight - returned[at - 1] < largest:
                largest, found = low + weight - returned[at - 1], (place, at - 1)
            if at < count and high - weight + returned[at] < largest:
                largest, found = high - weight + returned[at], (place, at)
        if found is None:
            return None
        return largest, found[0], back[found[1] - 1] if found[1] else None

    def _lightest_first(self, reader: int) -> tuple[list[int], list[int]]:
        """The places that a reader holds, and their weights."""
        places = self._held.places[reader][::-1]
        return places, list(map(self._held.weights.__getitem__, places))

    def _apply(self, fullest: int, partner: int, given: int, back: int | None) -> Step:
        moves = [(self._held.order[given], partner)]
        self._held.move(given, fullest, partner)
        if back is not None:
            moves.append((self._held.order[back], fullest))
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
