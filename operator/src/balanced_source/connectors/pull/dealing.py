"""Which splits a reader gets on request, and which reader gets a split that no one asked for."""

import heapq
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TypeVar

from balanced_source.api import SourceSplit, SplitId

SplitT = TypeVar("SplitT", bound=SourceSplit)


def dealt(
    pending: Mapping[SplitId, SplitT],
    counts: Mapping[int, int],
    near: Sequence[Callable[[SplitT, int], bool]] = (),
) -> dict[int, list[SplitT]]:
    """Return the splits that readers get.

    In turn, so that few splits are spread over many readers.

    Args:
        pending: splits to give out, in this order.
        counts: reader → splits that it asks for.
        near: whether a split is near to a reader, in several senses, the strictest first. A reader
            that a split is near to in one sense gets it before those that it is near to in a later
            one, and before all others.
    """
    left, given = {r: n for r, n in counts.items() if n > 0}, dict[int, list[SplitT]]()
    taken: set[SplitId] = set()
    # The strictest sense for all splits first, or a split would go to a far reader although another
    # one is near to it.
    for is_near in (*near, _anywhere):
        for split_id, split in pending.items():
            # There may be a million splits left, and no one asks for more.
            if not left:
                return given
            readers = (
                [] if split_id in taken else [reader for reader in left if is_near(split, reader)]
            )
            if readers:
                taken.add(split_id)
                _give(split, readers, left, given)
    return given


def _anywhere(split: object, reader: int) -> bool:
    del split, reader
    return True


def _give(
    split: SplitT, readers: Collection[int], left: dict[int, int], given: dict[int, list[SplitT]]
) -> None:
    """Give a split to the reader that was given the fewest."""
    # Ties go to the lowest number, so that equal questions get equal answers.
    reader = min(readers, key=lambda r: (len(given.get(r, ())), r))
    given.setdefault(reader, []).append(split)
    left[reader] -= 1
    if not left[reader]:
        del left[reader]


def least_loaded(
    splits: Iterable[SplitT], readers: Collection[int], owned: Iterable[int]
) -> dict[int, list[SplitT]]:
    """Return the readers that get splits which no one asked for.

    Always the one that has the fewest.

    Args:
        splits: to give out.
        readers: that may get them; at least one.
        owned: owner of each split that is being read.
    """
    loads = Counter(owned)
    heap = [(loads[reader], reader) for reader in readers]
    heapq.heapify(heap)
    given: dict[int, list[SplitT]] = {}
    for split in splits:
        load, reader = heap[0]
        given.setdefault(reader, []).append(split)
        heapq.heapreplace(heap, (load + 1, reader))
    return given
