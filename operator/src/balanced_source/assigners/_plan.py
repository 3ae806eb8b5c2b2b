"""What a change would move, without changing anything."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from balanced_source.api import RebalanceCause, RebalancePolicy, SplitId
from balanced_source.assigners._contract import Placement, SplitAssigner, place
from balanced_source.assigners._drift import imbalance


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The distribution of splits over readers.

    Attributes:
        parallelism: number of readers.
        owners: split → reader.
        pending: splits without a reader.
        loads: records per second of splits, as far as known.
    """

    parallelism: int
    owners: Mapping[SplitId, int] = field(default_factory=dict)
    pending: Collection[SplitId] = ()
    loads: Mapping[SplitId, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """The distribution that is wanted.

    Attributes:
        parallelism: number of readers.
        assigner: owner policy.
        policy: when splits may move.
        causes: why they may, if the policy allows it; none: they stay, except those of readers that
            no longer exist.
        unwanted: splits that are not read any more.
    """

    parallelism: int
    assigner: SplitAssigner
    policy: RebalancePolicy = field(default_factory=RebalancePolicy)
    causes: Collection[RebalanceCause] = ()
    unwanted: Collection[SplitId] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Balance:
    """How evenly splits are spread.

    Attributes:
        splits: number of splits per reader.
        load: records per second per reader; empty when no load is known.
        imbalance: largest load as a multiple of the best that the splits permit; numbers where no
            load is known.
    """

    splits: tuple[int, ...]
    load: tuple[float, ...]
    imbalance: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A split that gets another reader; `before` is None for one that had none."""

    split_id: SplitId
    before: int | None
    after: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The result of a change that is planned.

    Attributes:
        owners: split → reader.
        moves: in the order of the ids.
        dropped: splits that would not be read any more.
        before: balance now.
        after: balance then.
    """

    owners: Mapping[SplitId, int]
    moves: tuple[Move, ...]
    dropped: tuple[SplitId, ...]
    before: Balance
    after: Balance


def plan(current: Layout, wish: Wish) -> Plan:
    """Return what the change from `current` to `wish` would move.

    Pure: it computes what the enumerator would do.

    Raises:
        ContractViolationError: `wish.parallelism` is below 1.
    """
    gone = frozenset(wish.unwanted)
    wanted = {s: o for s, o in current.owners.items() if s not in gone}
    # Splits of readers that are no more move without any cause, so they count as pending.
    kept = {s: o for s, o in wanted.items() if o < wish.parallelism}
    allowed = [cause for cause in wish.causes if wish.policy.allows(cause)]
    limits = [wish.policy.limit(cause) for cause in allowed]
    question = Placement(
        parallelism=wish.parallelism,
        owners=kept,
        pending=[s for s in (*wanted, *current.pending) if s not in kept and s not in gone],
        may_move=bool(allowed),
        weights=current.loads if wish.assigner.uses_weights else {},
        max_moves=None
        if None in limits
        else max((limit for limit in limits if limit is not None), default=None),
    )
    owners = {**kept, **place(wish.assigner, question)}
    return Plan(
        owners=owners,
        moves=tuple(
            Move(split_id=s, before=current.owners.get(s), after=owners[s])
            for s in sorted(owners)
            if current.owners.get(s) != owners[s]
        ),
        dropped=tuple(sorted(gone.intersection([*current.owners, *current.pending]))),
        before=balance(current.owners, current.loads, current.parallelism),
        after=balance(owners, current.loads, wish.parallelism),
    )


def balance(
    owners: Mapping[SplitId, int], loads: Mapping[SplitId, float], parallelism: int
) -> Balance:
    """Return how evenly `owners` are spread over the readers.

    Splits of unknown load count as the mean.
    """
    counts = Counter(owners.values())
    known = [loads[s] for s in owners if s in loads]
    # Unknown splits count as the mean, as they do for the policy.
    mean = sum(known) / len(known) if known else 0.0
    totals = [0.0] * parallelism
    for split_id, owner in owners.items():
        totals[owner] += loads.get(split_id, mean)
    return Balance(
        splits=tuple(counts[reader] for reader in range(parallelism)),
        load=tuple(totals) if known else (),
        imbalance=imbalance(owners, loads, parallelism),
    )
