"""Which assignments are not yet covered by a checkpoint (FLIP-27 ``SplitAssignmentTracker``).

A checkpoint, here, is an epoch that a reader host has adopted durably: from then on the splits of
that epoch are in its Spark checkpoint, and it reports them itself after a restart. What was
assigned in later epochs is *uncovered*: no one but the coordinator knows of it, so exactly that
must come back when the host is lost.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Self

from balanced_source.api import SplitId

Owned = Mapping[SplitId, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitAssignmentTracker:
    """Immutable; each method that records something returns a new tracker.

    Attributes:
        uncheckpointed: split → subtask, assigned since the last checkpoint was taken.
        by_checkpoint: checkpoint id → what was assigned in the interval that it closed, until it
            completes.
    """

    uncheckpointed: Owned = field(default_factory=dict)
    by_checkpoint: Mapping[int, Owned] = field(default_factory=dict)

    def record(self, assigned: Owned) -> Self:
        """Splits were given to subtasks; an earlier record of the same split is replaced."""
        # Only the newest assignment of a split has to be covered.
        cleared = self.forget(assigned)
        return replace(cleared, uncheckpointed={**cleared.uncheckpointed, **assigned})

    def on_checkpoint(self, checkpoint_id: int) -> Self:
        """A checkpoint was taken: all that was recorded so far belongs to it."""
        # An epoch that only moves splits inside a host covers nothing new.
        if not self.uncheckpointed:
            return self
        closed = {**self.by_checkpoint.get(checkpoint_id, {}), **self.uncheckpointed}
        return replace(
            self, uncheckpointed={}, by_checkpoint={**self.by_checkpoint, checkpoint_id: closed}
        )

    def on_checkpoint_complete(
        self, checkpoint_id: int, *, of: Callable[[SplitId], bool] = lambda _: True
    ) -> Self:
        """Holders of splits chosen by `of` have checkpoint `checkpoint_id`, and all earlier ones.

        What is recorded about a split may name a former reader of its host: moves inside a host are
        not recorded.
        """
        kept: dict[int, Owned] = {}
        for taken, owned in self.by_checkpoint.items():
            # Epochs are adopted in order, so a later one covers all earlier ones of this holder.
            rest = owned if taken > checkpoint_id else {s: o for s, o in owned.items() if not of(s)}
            if rest:
                kept[taken] = rest
        return self if kept == self.by_checkpoint else replace(self, by_checkpoint=kept)

    def epoch_of(self, split_id: SplitId) -> int | None:
        """The checkpoint that will cover this split.

        None if one does already, 0 if the next one will.
        """
        if split_id in self.uncheckpointed:
            return 0
        return next(
            (taken for taken, owned in self.by_checkpoint.items() if split_id in owned), None
        )

    def epochs(self) -> dict[SplitId, int]:
        """`epoch_of` of all splits for which it is not None."""
        covered = {s: taken for taken, owned in self.by_checkpoint.items() for s in owned}
        return {**covered, **dict.fromkeys(self.uncheckpointed, 0)}

    def uncovered_since(
        self, checkpoint_id: int, *, of: Callable[[int], bool] = lambda _: True
    ) -> Owned:
        """What subtasks that were restored from `checkpoint_id` cannot know of, with its owner."""
        later = [owned for taken, owned in self.by_checkpoint.items() if taken > checkpoint_id]
        return {s: o for owned in (*later, self.uncheckpointed) for s, o in owned.items() if of(o)}

    def renumbered(self, numbers: Mapping[int, int]) -> Self:
        """The same with other numbers of subtasks, before → after; −1 where a subtask is gone."""

        def anew(owned: Owned) -> Owned:
            return {s: numbers.get(o, -1) for s, o in owned.items()}

        by_checkpoint = {taken: anew(owned) for taken, owned in self.by_checkpoint.items()}
        return replace(self, uncheckpointed=anew(self.uncheckpointed), by_checkpoint=by_checkpoint)

    def forget(self, split_ids: Iterable[SplitId]) -> Self:
        """The splits have no owner any more, or get another one."""
        gone = frozenset(split_ids)
        # Called for each assignment: mostly everything is covered, and nothing need be copied.
        if not gone or not (self.uncheckpointed or self.by_checkpoint):
            return self

        def without(owned: Owned) -> Owned:
            return (
                owned
                if gone.isdisjoint(owned)
                else {s: o for s, o in owned.items() if s not in gone}
            )

        rest = {taken: without(owned) for taken, owned in self.by_checkpoint.items()}
        return replace(
            self,
            uncheckpointed=without(self.uncheckpointed),
            by_checkpoint={taken: owned for taken, owned in rest.items() if owned},
        )
