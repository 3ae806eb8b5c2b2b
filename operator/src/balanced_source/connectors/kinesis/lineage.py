"""Shards and their parents.

Which shards may be read now, so that records of a partition key stay in order.

A shard that was split or merged is closed, and its children continue its range of hash keys. So a
child may be read only when all its parents are read to their end. No memory of read shards is
needed for that: a shard that is not held any more was read if one of its descendants was begun.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from balanced_source.api import SplitId


class Shard(NamedTuple):
    """A shard as the service lists it.

    Attributes:
        parents: ids of the shards whose hash keys it continues; they may not be listed any more.
        is_open: whether it still gets records.
    """

    parents: tuple[SplitId, ...] = ()
    is_open: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Lineage:
    """The shards of a stream, and what is known of them.

    Attributes:
        shards: all that the service lists.
        held: shards that have a position: readers read them, or they wait for a reader.
        finished: those of them that are read to their end.
        skipped: shards that are not to be read, because reading starts behind them.
    """

    shards: Mapping[SplitId, Shard]
    held: Collection[SplitId] = frozenset()
    finished: Collection[SplitId] = frozenset()
    skipped: Collection[SplitId] = frozenset()

    def readable(self) -> frozenset[SplitId]:
        """Return the shards that are held or may be read now."""
        begun = self.begun()
        # A held shard stays readable whatever its parents are: it was begun, so they were read.
        return frozenset(s for s in self.shards if s in self.held or self._is_next(s, begun))

    def replaced(self) -> frozenset[SplitId]:
        """Return the finished shards with a child that was begun: no one needs to remember them."""
        parents = {p for s in self.begun() if s in self.shards for p in self.shards[s].parents}
        return frozenset(s for s in self.finished if s in parents)

    def begun(self) -> frozenset[SplitId]:
        """Return the held shards with all their listed ancestors."""
        return self.with_ancestors(self.held)

    def with_ancestors(self, split_ids: Iterable[SplitId]) -> frozenset[SplitId]:
        """Return these shards with all their listed ancestors."""
        found, rest = set[SplitId](), list(split_ids)
        while rest:
            split_id = rest.pop()
            if split_id not in found:
                found.add(split_id)
                rest.extend(self.shards[split_id].parents if split_id in self.shards else ())
        return frozenset(found)

    def _is_next(self, split_id: SplitId, begun: Collection[SplitId]) -> bool:
        """Whether a shard was never begun, and nothing that comes before it is left to be read."""
        # A shard that is not held and has a begun descendant was read.
        if split_id in begun or split_id in self.skipped:
            return False
        return all(self._is_over(parent, begun) for parent in self.shards[split_id].parents)

    def _is_over(self, split_id: SplitId, begun: Collection[SplitId]) -> bool:
        """Whether a shard was read to its end, skipped, or is gone for good."""
        # A held shard has to be read on, unless it is known to be finished.
        if split_id in self.held:
            return split_id in self.finished
        # A shard that is not listed expired: waiting for it would stop its children forever.
        return split_id not in self.shards or split_id in begun or split_id in self.skipped
