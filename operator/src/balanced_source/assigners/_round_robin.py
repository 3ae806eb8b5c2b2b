"""The global count-balanced policy.

Max − min ≤ 1 over all splits of all topics and clusters, with fewest moves.

Upstream's global mode derives the next owner from a count (``known mod n``), which drifts away from
balance after any removal (FLINK-39012's own example ends at a difference of 3). Here a split always
goes to the reader that has the fewest, so a hole is filled before anything piles up.
"""

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from balanced_source.api import SplitId
from balanced_source.assigners._contract import Placement, SplitAssigner
from balanced_source.assigners._identity import AssignerIdentity


@dataclass(frozen=True)
class RoundRobinAssigner(SplitAssigner):
    """Deal splits, in order of their ids, to the reader with the fewest.

    Ties go to the lowest subtask.
    """

    @property
    def identity(self) -> AssignerIdentity:
        return AssignerIdentity(name="RoundRobin")

    def place(self, placement: Placement) -> dict[SplitId, int]:
        """Return the least loaded reader for each pending split.

        If splits may move, the fewest moves that restore balance.
        """
        counts = Counter(placement.owners.values())
        loads = [counts[subtask] for subtask in range(placement.parallelism)]
        # In order of the ids, so that the order of the question does not matter.
        homeless = sorted(placement.pending)
        if placement.may_move:
            quotas = balanced_quotas(loads, len(homeless))
            surplus = _limited(
                [load - quota for load, quota in zip(loads, quotas, strict=True)],
                placement.max_moves,
            )
            moving = _pick_surplus(placement.owners, surplus)
            homeless = sorted([*homeless, *moving])
            loads = [load - given for load, given in zip(loads, surplus, strict=True)]
        return deal(homeless, loads)


def balanced_quotas(loads: Sequence[int], pending: int) -> list[int]:
    """Return the number of splits of each reader, equal within one.

    The larger shares are for the readers that have most.

    Giving the larger shares to the fullest readers is what makes the number of moves minimal: a
    reader gives away only what exceeds its quota, and no other choice of quotas lets the readers
    keep more.
    """
    base, extra = divmod(sum(loads) + pending, len(loads))
    fullest = sorted(range(len(loads)), key=lambda i: (-loads[i], i))[:extra]
    quotas = [base] * len(loads)
    for subtask in fullest:
        quotas[subtask] += 1
    return quotas


def deal(split_ids: Iterable[SplitId], loads: Sequence[int]) -> dict[SplitId, int]:
    """Hand out splits one by one to the least loaded reader."""
    # A heap, because the least loaded of many readers is asked for once per split.
    heap = [(load, subtask) for subtask, load in enumerate(loads)]
    heapq.heapify(heap)
    owners = {}
    for split_id in split_ids:
        load, subtask = heap[0]
        owners[split_id] = subtask
        heapq.heapreplace(heap, (load + 1, subtask))
    return owners


def _limited(surplus: Sequence[int], limit: int | None) -> list[int]:
    """What each reader gives: its surplus.

    If only `limit` splits may move, the readers that have most give first.
    """
    given = [max(0, count) for count in surplus]
    left = sum(given) if limit is None else limit
    # The largest share decides how long a micro-batch takes.
    for subtask in sorted(range(len(given)), key=lambda i: (-given[i], i)):
        given[subtask] = min(given[subtask], left)
        left -= given[subtask]
    return given


def _pick_surplus(owners: Mapping[SplitId, int], surplus: Sequence[int]) -> list[SplitId]:
    """Choose which splits leave the overfull readers, in order.

    Evenly spaced over their sorted ids.

    Even spacing keeps every topic spread; taking the last ones would strip a reader of whole
    topics.
    """
    if not any(surplus):
        return []
    # Sorted, or which splits move would depend on the order of a mapping.
    ordered = sorted(owners)
    places: list[list[int]] = [[] for _ in surplus]  # numbers sort faster than ids
    for place, owner in enumerate(map(owners.__getitem__, ordered)):
        places[owner].append(place)
    moving: list[int] = []
    for held, count in zip(places, surplus, strict=True):
        size, twice = len(held), 2 * count
        moving += [held[odd * size // twice] for odd in range(1, twice, 2)]
    return [ordered[place] for place in sorted(moving)]
