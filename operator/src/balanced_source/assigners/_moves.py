"""Lowering the largest load by moving splits: which ones, and in which order they are worth it.

Splits are indices into a `WeightTable`; `owners` has the reader of each.
"""

import bisect
import heapq
import itertools
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from balanced_source.assigners._weights import WeightTable

_PARTNERS: Final = 4
"""How many of the least loaded readers are tried as partner of the fullest one."""

_FEW: Final = 16
"""Up to this many splits of a reader are removed one by one, more of them in one pass."""

_SLACK: Final = 10
"""A taker may come above its giver by one tenth of the ceiling: the local search makes up for it.
"""

Move = tuple[int, int]
"""A split and its new owner."""


Given = tuple[list[int], list[int]]
"""The places that a reader gives, and the reader that takes each of them."""


class Step(NamedTuple):
    """Moves that make sense only together, and the largest load after them."""

    moves: tuple[Move, ...]
    largest: int


class Steps:
    """A list of steps as columns.

    There may be tens of thousands. An object for each would make the garbage collector look at
    everything that the operator holds, again and again.

    Attributes:
        splits: that move, in the order of their moves.
        owners: new owner of each of them.
        ends: number of moves that are done after each step.
        largest: largest load after each step.
    """

    def __init__(self) -> None:
        self.splits: list[int] = []
        self.owners: list[int] = []
        self.ends: list[int] = []
        self.largest: list[int] = []

    def add(self, step: Step) -> None:
        """Append a step."""
        for split, owner in step.moves:
            self.splits.append(split)
            self.owners.append(owner)
        self.ends.append(len(self.splits))
        self.largest.append(step.largest)


class Holdings:
    """Tracks which reader holds which splits, and the load of each reader, move by move.

    Splits are named by their places in the reverse of the table's order here, so the weights rise
    with the places. What weighs at most so much is then found by a search for a place, without a
    look at the weights of a reader's splits.

    Args:
        table: weights.
        owners: reader of each split.
        loads: of each reader.
    """

    def __init__(self, table: WeightTable, owners: Sequence[int], loads: Sequence[int]) -> None:
        self.order = table.order[::-1]
        self.weights = table.falling[::-1]
        """Of the split at each place."""
        self.loads = list(loads)
        self.places: list[list[int]] = [[] for _ in loads]
        """Of the splits of each reader, the lightest first."""
        by_place = map(self.places.__getitem__, map(owners.__getitem__, self.order))
        # The fastest way to append each place to the list of its reader: no step of it is Python.
        deque(map(list.append, by_place, itertools.count()), maxlen=0)

    def above(self, weight: int) -> int:
        """Return the first place whose split weighs more than `weight`."""
        return bisect.bisect_right(self.weights, weight)

    def move(self, place: int, giver: int, taker: int) -> None:
        """Move one split to another reader."""
        self._remove(place, giver)
        bisect.insort(self.places[taker], place)
        self.loads[giver] -= self.weights[place]
        self.loads[taker] += self.weights[place]

    def hand_over(self, moves: Mapping[int, Given]) -> None:
        """Let many splits change their readers.

        Each split is given once. The loads must follow these moves already.

        Args:
            moves: what each reader gives.
        """
        for giver, (places, _) in moves.items():
            self._remove_all(places, giver)
        for places, takers in moves.values():
            for place, taker in zip(places, takers, strict=True):
                self.places[taker].append(place)
        for taker in set[int]().union(*(takers for _, takers in moves.values())):
            self.places[taker].sort()

    def _remove_all(self, gone: Sequence[int], giver: int) -> None:
        if len(gone) > _FEW:
            # To remove them one by one would shift the list for each.
            chosen = frozenset(gone)
            self.places[giver] = [place for place in self.places[giver] if place not in chosen]
            return
        for place in gone:
            self._remove(place, giver)

    def _remove(self, place: int, giver: int) -> None:
        places = self.places[giver]
        del places[bisect.bisect_left(places, place)]


def level(held: Holdings, steps: Steps, *, ceiling: int) -> None:
    """Append steps that move splits from readers above `ceiling` to readers below it.

    Applies them to `held`.

    Few splits move, because the heaviest go first that bring the giver nearer to the ceiling
    without lifting the taker far above the giver. In the order of the steps the largest load falls
    as fast as it can.
    """
    loads = held.loads
    takers = [(load, subtask) for subtask, load in enumerate(loads) if load < ceiling]
    heapq.heapify(takers)
    # The fullest first: it needs the emptiest readers most.
    givers = sorted(
        (s for s, load in enumerate(loads) if load > ceiling), key=lambda s: (-loads[s], s)
    )
    moves = {giver: _give(held, giver, ceiling, takers) for giver in givers}
    for place, taker, largest in _fullest_first(moves, held.weights, loads):
        steps.splits.append(held.order[place])
        steps.owners.append(taker)
        steps.ends.append(len(steps.splits))
        steps.largest.append(largest)
    held.hand_over(moves)


def _give(held: Holdings, giver: int, ceiling: int, takers: list[tuple[int, int]]) -> Given:
    """What one reader gives; `takers` is a heap of (load, reader), which is kept up to date."""
    given: Given = [], []
    places, weights, load = held.places[giver], held.weights, held.loads[giver]
    slack, left = ceiling // _SLACK, len(places)
    # Once the emptiest reader is at the ceiling, the others are, too.
    while left and load > ceiling and takers and takers[0][0] < ceiling:
        filled, taker = takers[0]
        # A move that lifts the taker above the giver's former load only exchanges the two. The
        # heaviest go first, unless one makes the taker the fuller one by more than a search mends.
        most = min(2 * (load - ceiling) - 1, load - filled - 1, (load - filled + slack) // 2)
        place = places[left - 1]
        weight = weights[place]
        if weight > most:
            # All that are too heavy at once: mostly only a few of thousands are given.
            left = bisect.bisect_left(places, held.above(most), 0, left)
            continue
        if not weight:
            break
        heapq.heapreplace(takers, (filled + weight, taker))
        given[0].append(place)
        given[1].append(taker)
        load -= weight
        left -= 1
    return given


def _fullest_first(
    moves: Mapping[int, Given], weights: Sequence[int], loads: list[int]
) -> Iterator[tuple[int, int, int]]:
    """The moves in such an order that always the reader that is fullest by then gives next.

    Yields place, taker and the largest load after the move; `loads` follows the moves.
    """
    # Readers that give nothing bound how far the largest load can fall.
    peak = max((load for subtask, load in enumerate(loads) if subtask not in moves), default=0)
    ready = [(-loads[giver], giver, 0) for giver in moves if moves[giver][0]]
    heapq.heapify(ready)
    stuck = max((loads[giver] for giver in moves if not moves[giver][0]), default=0)
    while ready:
        _, giver, number = ready[0]
        places, takers = moves[giver]
        place, taker = places[number], takers[number]
        loads[giver] -= weights[place]
        loads[taker] += weights[place]
        peak = max(peak, loads[taker])
        if number + 1 < len(places):
            heapq.heapreplace(ready, (-loads[giver], giver, number + 1))
        else:
            heapq.heappop(ready)
            stuck = max(stuck, loads[giver])
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
        held, weights = self._held, self._held.weights
        high, low = self._loads[fullest], self._loads[partner]
        given, back = held.places[fullest], held.places[partner]
        half = (high - low) // 2
        # Of those that weigh at most half of the difference, the heaviest is the best gift: no swap
        # brings the two nearer than that.
        gifts = bisect.bisect_left(given, held.above(half))
        heaviest = weights[given[gifts - 1]] if gifts else 0
        largest = high - heaviest
        found: tuple[int, int | None] | None = None
        if heaviest:
            found = (given[bisect.bisect_left(given, held.above(heaviest - 1))], None)
        largest_back, at = weights[back[-1]] if back else 0, 0
        for place in itertools.islice(given, gifts, None):
            weight = weights[place]
            # Neither this one nor a heavier one can be made up for.
            if low + weight - largest_back >= largest:
                break
            # Up to here, what comes back leaves the partner with the larger load; from here on, the
            # fullest. Those on both sides of that bring the two nearest to each other.
            at = bisect.bisect_left(back, held.above(weight - half - 1), at)
            lighter = weights[back[at - 1]] if at else 0
            if low + weight - lighter < largest:
                largest, found = low + weight - lighter, (place, back[at - 1] if at else None)
            if at < len(back) and high - weight + weights[back[at]] < largest:
                largest, found = high - weight + weights[back[at]], (place, back[at])
        return None if found is None else (largest, *found)

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
