"""What an owner policy is asked, what it answers, and the check of the answer."""

import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from balanced_source.api import Problem, SplitId
from balanced_source.assigners._identity import AssignerIdentity
from balanced_source.errors import ContractViolationError


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """One question to a policy.

    Attributes:
        parallelism: number of readers; owners are 0 … parallelism − 1.
        owners: splits that have an owner below `parallelism`.
        pending: splits that need one. Disjoint from `owners`.
        may_move: whether splits in `owners` may get another one.
        weights: load per split (any unit, ≥ 0) for policies that look at it; a missing split counts
            as average.
        max_moves: how many splits of `owners` may get another one, for policies that can do with
            few; None: any number.
    """

    parallelism: int
    owners: Mapping[SplitId, int] = field(default_factory=dict)
    pending: Collection[SplitId] = ()
    may_move: bool = False
    weights: Mapping[SplitId, float] = field(default_factory=dict)
    max_moves: int | None = None


class SplitAssigner(ABC):
    """A policy that picks owners.

    Stateless and deterministic: equal questions get equal answers in any process, whatever the
    order of the input (never the builtin ``hash``). Subclasses are frozen dataclasses: equal
    settings compare equal.
    """

    @property
    @abstractmethod
    def identity(self) -> AssignerIdentity:
        """What this policy is called where it is stored.

        Policies that may give other owners have other identities.
        """

    @abstractmethod
    def place(self, placement: Placement) -> dict[SplitId, int]:
        """Owners that change: one for every pending split, others only where `may_move` allows it.

        Call `place` of this package rather than this method: it checks question and answer.
        """

    @property
    def uses_weights(self) -> bool:
        """Whether `Placement.weights` matters to this policy."""
        return False

    def warning(self, parallelism: int) -> Problem | None:
        """Return what a user should know about this policy at this parallelism; None if nothing."""
        del parallelism
        return None


def place(assigner: SplitAssigner, placement: Placement) -> dict[SplitId, int]:
    """Ask `assigner` and check its answer.

    Raises:
        ContractViolationError: the question is malformed (parallelism < 1, an owner that is no
            reader, a split both owned and pending), or the answer breaks the contract. Names the
            split.
    """
    _check_question(placement)
    changes = assigner.place(placement)
    _check_answer(assigner, placement, changes)
    return changes


def _check_question(placement: Placement) -> None:
    n = placement.parallelism
    if n < 1:
        raise ContractViolationError(f"parallelism must be at least 1, not {n}")
    # The smallest and the largest tell in one pass; the split is looked for only if one is wrong.
    if (
        placement.owners
        and not 0 <= min(placement.owners.values()) <= max(placement.owners.values()) < n
    ):
        split_id, owner = next((s, o) for s, o in placement.owners.items() if not 0 <= o < n)
        raise ContractViolationError(f"split {split_id} is owned by {owner}, outside [0, {n})")
    if not placement.owners.keys().isdisjoint(placement.pending):
        split_id = next(s for s in placement.pending if s in placement.owners)
        raise ContractViolationError(f"split {split_id} is pending and owned at once")
    weights = placement.weights
    if not weights or (min(weights.values()) >= 0 and sum(weights.values()) < math.inf):
        return  # not so if any of them is not a number, and much faster than to look at each
    for split_id, weight in weights.items():
        if not 0 <= weight < math.inf:
            raise ContractViolationError(
                f"split {split_id} weighs {weight}: a weight is finite and not negative"
            )


def _check_answer(
    assigner: SplitAssigner, placement: Placement, changes: Mapping[SplitId, int]
) -> None:
    name, n = type(assigner).__name__, placement.parallelism
    # Without a loop in Python where all is well: a split is looked for only if one is wrong.
    if not all(map(changes.__contains__, placement.pending)):
        split_id = next(s for s in placement.pending if s not in changes)
        # A split without an owner is read by nobody, and nothing would tell.
        raise ContractViolationError(f"{name} left split {split_id} without an owner")
    if changes and not 0 <= min(changes.values()) <= max(changes.values()) < n:
        split_id, owner = next((s, o) for s, o in changes.items() if not 0 <= o < n)
        raise ContractViolationError(f"{name} gave split {split_id} to {owner}, outside [0, {n})")
    if placement.may_move or len(changes) == len(placement.pending):
        return
    for split_id in changes:
        if split_id in placement.owners:
            raise ContractViolationError(f"{name} moved split {split_id} although nothing may move")
