"""Bounds what readers read in a micro-batch by time, so that a slow one does not keep the others.

A micro-batch lasts as long as its slowest task. Where readers ask for splits, a fast reader is to
read more of them than a slow one: so all readers get what they can read in the same time, which is
what most of them need for the splits that they hold. At the end, when there are no more splits,
idle readers take parts of what the slow one has left.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Final, NamedTuple

from balanced_source.api import SplitId
from balanced_source.documents.stream_offset import StreamOffset

SHORTEST: Final = 0.1
"""Seconds that a micro-batch may take in any case: below that, its own costs outweigh."""

WAITING: Final = 1.0
"""Seconds that a reader without splits may wait for the next micro-batch: its splits may have come
just after this one was planned. Also how long the last share must take to be cut."""

TOLERANCE: Final = 1.5
"""How much longer than the others a reader may take before its share is cut: each cut makes a task
open its split once more."""


class Pace(NamedTuple):
    """What a micro-batch reads.

    Attributes:
        positions: how far each split is read.
        cut_above: see `StreamOffset.max_records_per_reader`; None: nothing is handed to others.
    """

    positions: Mapping[SplitId, int]
    cut_above: int | None = None


def paced(
    base: StreamOffset,
    positions: Mapping[SplitId, int],
    speeds: Mapping[int, float],
    *,
    no_more_splits: Collection[int],
    asked_for: Callable[[Collection[SplitId]], Collection[SplitId] | None],
    may_cut: Callable[[SplitId], bool],
) -> Pace:
    """Return what a micro-batch reads, so that all readers take about the same time.

    Nothing changes while the speed of a reader with splits is unknown.

    Args:
        base: offset from which the micro-batch continues; it knows the owners.
        positions: how far each split could be read, never less than where `base` stands.
        speeds: reader → advance of positions per second.
        no_more_splits: readers that get no further splits.
        asked_for: returns those of some splits that readers have asked for, None for all. Others
            are read as far as they can be: their owners have to read all of it.
        may_cut: whether a split can be read in parts; one that cannot is read as a whole, unless
            its reader reads another one.
    """
    held = {s: p or 0 for s, p in base.positions.items()}
    moving = [s for s in base.owners if positions.get(s, 0) > held.get(s, 0)]
    known, shares = asked_for(moving), dict[int, list[SplitId]]()
    asked = frozenset(moving if known is None else known)
    for split_id in moving:
        if split_id in asked:
            shares.setdefault(base.owners[split_id], []).append(split_id)
    busy = frozenset(base.owners[s] for s in moving if s not in asked)
    extents = {r: sum(positions[s] - held[s] for s in splits) for r, splits in shares.items()}
    times = {r: extents[r] / speeds[r] for r in shares if speeds.get(r, 0.0) > 0}
    if not shares or len(times) < len(shares):
        return Pace(positions)
    idle = [reader for reader in base.readers if reader not in shares and reader not in busy]
    expecting = [reader for reader in idle if reader not in no_more_splits]
    # Readers that have splits may not have asked for more yet, so no one has told them.
    if idle and not expecting:
        is_long = max(times.values()) > WAITING
        # Whole shares are cut, so a split that no one asked for would be cut as well.
        is_cut = is_long and not busy and all(map(may_cut, moving))
        # The mean: no reader reads more than that, the idle ones included.
        return Pace(positions, -(-sum(extents.values()) // len(base.readers)) if is_cut else None)
    needed = sorted([*times.values(), *[WAITING] * len(expecting)])
    # The lower median: with two readers the faster one, and with many what most of them need.
    bound = max(SHORTEST, needed[(len(needed) - 1) // 2])
    found = dict(positions)
    for reader, time in times.items():
        if time > TOLERANCE * bound:
            budget = max(1, int(speeds[reader] * bound))
            found |= _within(budget, sorted(shares[reader]), held, positions, may_cut)
    return Pace(found)


def _within(
    budget: int,
    splits: list[SplitId],
    held: Mapping[SplitId, int],
    positions: Mapping[SplitId, int],
    may_cut: Callable[[SplitId], bool],
) -> dict[SplitId, int]:
    """Return how far the splits of one reader are read with a budget, one split after the other."""
    found: dict[SplitId, int] = {}
    # Begun ones first: their readers would open them in each micro-batch otherwise.
    for split_id in sorted(splits, key=lambda s: held[s] == 0):
        extent = positions[split_id] - held[split_id]
        # A reader that stood still would wait forever for a budget that is large enough.
        is_first = all(found[s] == held[s] for s in found)
        if extent <= budget or (is_first and not may_cut(split_id)):
            found[split_id] = positions[split_id]
        else:
            found[split_id] = held[split_id] + (budget if may_cut(split_id) else 0)
        budget = max(0, budget - extent)
    return found
