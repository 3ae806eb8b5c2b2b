"""The enumerator's part that gives splits to readers and rebalances them."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Generic

from balanced_source import assigners
from balanced_source.api import (
    RebalanceCause,
    RebalanceMode,
    SplitEnumerator,
    SplitEnumeratorContext,
    SplitId,
    SplitsAssignment,
)
from balanced_source.connectors.discovery.contract import SplitDiscovery
from balanced_source.connectors.discovery.values import (
    DiscoveryState,
    SplitT,
    TransientState,
    rest_of,
)
from balanced_source.names import counted
from balanced_source.reasons import Reason


class PlacingEnumerator(SplitEnumerator[SplitT, DiscoveryState[SplitT]], Generic[SplitT]):
    """Places splits; the base of `DiscoveringSplitEnumerator`, which finds them."""

    def __init__(
        self,
        context: SplitEnumeratorContext[SplitT],
        source: SplitDiscovery[SplitT],
        state: DiscoveryState[SplitT],
    ) -> None:
        super().__init__(context)
        self.source = source
        self.state = state
        self.transient = TransientState()

    def rebalance(self, cause: RebalanceCause) -> None:
        if self.source.rebalance_policy.allows(cause):
            self.transient = replace(self.transient, cause=cause)
            self.state = replace(self.state, rebalance_due=True)
        self._assign()

    def handle_loads(self) -> None:
        """Look at the loads now and then, and rebalance when a drift has proved lasting."""
        policy, now = self.source.rebalance_policy, self.context.now()
        if policy.mode is not RebalanceMode.DRIFT:
            return
        watch = self.transient.drift or assigners.DriftWatch(changed_at=now)
        drift = None
        if watch.is_look_due(policy, now) and self._is_settled():
            question = self._question((), cause=RebalanceCause.DRIFT)
            positions = self.context.split_positions()
            watch, drift = watch.look(
                policy, self.source.assigner, question, positions=positions, now=now
            )
        self.transient = replace(self.transient, drift=watch)
        if drift is not None:
            self._follow_drift(drift)

    def _is_settled(self) -> bool:
        """Whether every split has its owner and every reader is there.

        Otherwise splits move anyway soon.
        """
        is_waiting = self.state.unassigned or self.state.rebalance_due
        return (
            not is_waiting
            and len(self.context.registered_readers()) == self.context.current_parallelism()
        )

    def _follow_drift(self, drift: assigners.Drift) -> None:
        self.context.report(
            Reason.LOADS_DRIFTED,
            f"Imbalance {drift.before:.2f} (busiest reader vs. ideal). "
            f"Moving {counted(len(drift.moves), 'split')} reduces it to {drift.after:.2f}.",
        )
        self._give(drift.moves)

    def _assign(self) -> None:
        """Give owners to all that may have one, then tell readers if that was all."""
        # A rebalance before all scopes have answered would be followed by another one.
        may_move = self.state.rebalance_due and self.transient.is_sure(self.source.scopes())
        pending = [s for s in self.state.unassigned if self._is_confirmed(s)]
        if pending or may_move:
            self._place(pending, may_move=may_move)
        # Readers are told after all splits are given, because no split may follow this word.
        if self._is_complete():
            for subtask in self.context.registered_readers():
                self.context.signal_no_more_splits(subtask)

    def _is_confirmed(self, split_id: SplitId) -> bool:
        """Nothing is assigned before this process asked its scope, or while it seems gone."""
        return (
            not self.transient.doubts(split_id)
            and self.source.scope_of(split_id) in self.transient.answered
        )

    def _place(self, pending: Collection[SplitId], *, may_move: bool) -> None:
        state, n = self.state, self.context.current_parallelism()
        # Its former reader gets a split back, unless parallelism fell: that moves nothing without
        # need.
        kept = {s: o for s in pending if (o := state.preferred.get(s, n)) < n}
        question = self._question(
            [s for s in pending if s not in kept], cause=self.transient.cause if may_move else None
        )
        if kept:
            # They count as load, so that others go where there is room.
            question = replace(question, owners={**question.owners, **kept})
        changes = assigners.place(self.source.assigner, question)
        wanted = {**kept, **changes}
        readers = self.context.registered_readers()
        absent = {s for s, o in wanted.items() if o not in readers}
        there = {s: o for s, o in wanted.items() if s not in absent}
        # What a lost host had waits for it; what no one had does not.
        if readers and (homeless := absent.intersection(question.pending)):
            there |= self._stand_ins(sorted(homeless), {**question.owners, **there})
        self._give(there)
        # The rebalance stays due until every move of it could be made.
        is_due = self.state.rebalance_due and not (may_move and not absent)
        self.state = replace(self.state, rebalance_due=is_due)
        # Loads must settle after moves before a drift can be measured again.
        if may_move and self.transient.drift is not None:
            self.transient = replace(
                self.transient, drift=self.transient.drift.moved(self.context.now())
            )

    def _stand_ins(
        self, homeless: Sequence[SplitId], owners: Mapping[SplitId, int]
    ) -> dict[SplitId, int]:
        """Returns the readers of splits whose own reader is not there, because its host is lost.

        No one knows whether it comes back. If it does, and splits may move then, it gets its share.
        """
        readers, loads = sorted(self.context.registered_readers()), Counter(owners.values())
        if self.source.rebalance_policy.allows(RebalanceCause.RECOVERY):
            self.state = replace(self.state, rebalance_due=True)
        dealt = assigners.deal(homeless, [loads[reader] for reader in readers])
        return {split_id: readers[place] for split_id, place in dealt.items()}

    def _question(
        self, pending: Collection[SplitId], *, cause: RebalanceCause | None
    ) -> assigners.Placement:
        """To the policy; without a cause nothing may move."""
        owners, finished = self.context.current_assignments(), self.state.finished
        return assigners.Placement(
            parallelism=self.context.current_parallelism(),
            # A split that is read to its end is no load, though it still has an owner.
            owners={s: o for s, o in owners.items() if s not in finished} if finished else owners,
            pending=pending,
            may_move=cause is not None,
            weights=self.context.split_loads() if self.source.assigner.uses_weights else {},
            max_moves=self.source.rebalance_policy.limit(cause) if cause is not None else None,
        )

    def _give(self, owners: Mapping[SplitId, int]) -> None:
        given: dict[int, list[SplitT]] = {}
        pending = self.state.unassigned
        for split_id, subtask in owners.items():
            if split_id in pending:
                given.setdefault(subtask, []).append(pending[split_id])
        # Splits that have an owner need no object: mostly they stay at their host, at its own
        # position.
        self.context.move_splits({s: o for s, o in owners.items() if s not in pending})
        self.state = replace(
            self.state,
            unassigned={s: x for s, x in pending.items() if s not in owners},
            preferred={s: o for s, o in self.state.preferred.items() if s not in owners},
        )
        self.context.assign_splits(SplitsAssignment(assignment=given))

    def is_settled(self) -> bool:
        is_sure = self.transient.is_sure(self.source.scopes())
        return is_sure and not (self.undiscovered() or self.transient.is_asking)

    def only_awaits(self) -> bool:
        is_awaiting = self.source.discovers_once and any(self.transient.awaited.values())
        return is_awaiting and self._is_all_read()

    def _is_all_read(self) -> bool:
        """Whether all splits that are known, with an owner or without, are read to their end."""
        owned = self.context.current_assignments()
        return self.state.finished.issuperset((*owned, *self.state.unassigned))

    def _awaits_paused(self) -> bool:
        """Whether a scope that is paused has splits that were not read to their stop."""
        paused = self.source.paused_scopes()
        return bool(paused) and any(
            self.source.scope_of(s) in paused and rest_of(entry.split) is not None
            for s, entry in self.state.retained.items()
        )

    def _is_complete(self) -> bool:
        """Whether no further split can appear: discovery runs once, and has told everything."""
        if not self.source.discovers_once or self.undiscovered() or self._awaits_paused():
            return False
        # A finished split without an owner needs none any more: no application may run that could
        # take it.
        waiting = self.state.unassigned.keys() - self.state.finished
        return self.transient.answered.issuperset(self.source.scopes()) and not (
            self.transient.is_unsettled or waiting
        )
