"""Flink's ``per_cluster`` enumerator mode, for any source.

Every scope deals its splits as if it were alone.
"""

from dataclasses import dataclass, replace
from itertools import groupby

from balanced_source.api import Problem, SplitId
from balanced_source.assigners._contract import Placement, SplitAssigner
from balanced_source.assigners._identity import AssignerIdentity


@dataclass(frozen=True)
class PerScopeAssigner(SplitAssigner):
    """Asks `inner` once per scope, with the splits of that scope only.

    The scope is the first place of a split's id.

    Every scope is balanced, all together are not: what is left over of each scope meets on the same
    readers. With `HashAssigner` inside, and clusters as scopes, owners are those of Flink's default
    mode.
    """

    inner: SplitAssigner

    @property
    def identity(self) -> AssignerIdentity:
        return AssignerIdentity(
            name="PerScope", parameters={"inner": self.inner.identity.to_json()}
        )

    def place(self, placement: Placement) -> dict[SplitId, int]:
        """Return the owners that `inner` picks in each scope."""
        changes: dict[SplitId, int] = {}
        left = placement.max_moves
        for _, ids in groupby(
            sorted({*placement.owners, *placement.pending}), key=lambda split_id: split_id[0]
        ):
            members = frozenset(ids)
            found = self.inner.place(replace(_only(placement, members), max_moves=left))
            if left is not None:
                # The limit is one for all scopes, which are asked in their order.
                left -= sum(s in placement.owners for s in found)
            changes |= found
        return changes

    @property
    def uses_weights(self) -> bool:
        return self.inner.uses_weights

    def warning(self, parallelism: int) -> Problem | None:
        return self.inner.warning(parallelism)


def _only(placement: Placement, members: frozenset[SplitId]) -> Placement:
    return replace(
        placement,
        owners={s: o for s, o in placement.owners.items() if s in members},
        pending=[s for s in placement.pending if s in members],
        weights={s: w for s, w in placement.weights.items() if s in members},
    )
