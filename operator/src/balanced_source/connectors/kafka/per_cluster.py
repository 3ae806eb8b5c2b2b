"""Flink's ``per_cluster`` enumerator mode: every cluster deals its splits as if it were alone."""

from dataclasses import dataclass, replace
from itertools import groupby

from balanced_source.api import SplitId
from balanced_source.assigners import Placement, SplitAssigner


@dataclass(frozen=True)
class PerClusterAssigner(SplitAssigner):
    """Asks `inner` once per cluster, with the splits of that cluster only.

    Every cluster is balanced, all together are not: what is left over of each cluster meets on the same readers. With
    `HashAssigner` inside, owners are those of Flink's default mode.
    """

    inner: SplitAssigner

    def place(self, placement: Placement) -> dict[SplitId, int]:
        """What `inner` says for each cluster."""
        changes: dict[SplitId, int] = {}
        left = placement.max_moves
        for _, ids in groupby(sorted({*placement.owners, *placement.pending}), key=lambda split_id: split_id[0]):
            members = frozenset(ids)
            found = self.inner.place(replace(_only(placement, members), max_moves=left))
            if left is not None:
                left -= sum(s in placement.owners for s in found)
            changes |= found
        return changes

    @property
    def uses_weights(self) -> bool:
        return self.inner.uses_weights

    def warning(self, parallelism: int) -> str | None:
        return self.inner.warning(parallelism)


def _only(placement: Placement, members: frozenset[SplitId]) -> Placement:
    return replace(
        placement,
        owners={s: o for s, o in placement.owners.items() if s in members},
        pending=[s for s in placement.pending if s in members],
        weights={s: w for s, w in placement.weights.items() if s in members},
    )
