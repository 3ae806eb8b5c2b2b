"""Rules 3 and 4: owners are balanced, and no more splits move than must."""

from collections import Counter
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from balanced_source.api import (
    SplitId,
    SupportsSplitReassignmentOnRecovery,
)
from balanced_source.coordinator import (
    Event,
    HostPhase,
    HostRole,
    HostState,
    ParallelismChanged,
)
from balanced_source.coordinator.state import CoordinatorState
from proof.values import Operator, Violation

Owners = Mapping[SplitId, int]


_LARGEST = 64
"""More readers than any explored world has."""


def is_new(old: HostState, new: HostState) -> bool:
    """Whether a host is served again, or by another incarnation."""
    return new.incarnation != old.incarnation or old.phase is HostPhase.RECOVERING


def check_moves(before: Operator, event: Event, after: Operator) -> None:
    old, new = _claims_then(before, after), after.coordinator.state
    was_due = before.enumerator.state.rebalance_due
    is_due = after.enumerator.state.rebalance_due
    are_others = new.members != before.coordinator.state.members
    may_move = (
        was_due
        or are_others
        or isinstance(event, ParallelismChanged)
        or _has_recovered(before, after)
    )
    moved = {s for s, o in new.owners.items() if s in old and old[s] != o}
    if not may_move and (unasked := {s for s in moved if old[s] < new.parallelism}):
        raise Violation(f"rule 4, sticky: {sorted(unasked)} moved, and nobody asked for it")
    # What waits for readers that are not there has its place, too. What waits for a discovery may
    # not exist any more, and has none.
    waiting = new.owners.keys() | after.enumerator.state.unassigned.keys()
    needless = min(
        _needless(moved, old, there, new.parallelism) for there in (new.owners.keys(), waiting)
    )
    if needless > 0:
        raise Violation(f"rule 4, sticky: {sorted(moved)} moved, {needless} of them without need")
    unfinished = {s: o for s, o in new.owners.items() if s not in after.enumerator.state.finished}
    # What waits for a discovery goes where least is, then.
    waits = len(after.enumerator.state.unassigned)
    if may_move and not is_due and spread(unfinished, new.parallelism, waits=waits) > 1:
        raise Violation(
            f"rule 3, balanced: {dict(new.owners)} over {new.parallelism} readers after a rebalance"
        )
    if not may_move:
        check_growth(before, after)


def _needless(
    moved: AbstractSet[SplitId], old: Owners, there: AbstractSet[SplitId], parallelism: int
) -> int:
    """How many more moved than an even spread of the splits that are there needs."""
    stays = {s: o for s, o in old.items() if o < parallelism and s in there}
    return len(moved & stays.keys()) - fewest_moves(stays, len(there), parallelism)


def _claims(operator: Operator) -> Owners:
    """Who has each split, or had it last and gets it back if possible."""
    return {**operator.enumerator.state.preferred, **operator.coordinator.state.owners}


def _claims_then(before: Operator, after: Operator) -> Owners:
    """Owners before a turn, and what hosts that register in it hold.

    What was given without hosts that hold something, and never adopted, is a guess and claims
    nothing; what they hold of splits without an owner does. The first reader of a host speaks for
    those of its readers that no longer exist.
    """
    old, new = before.coordinator.state.hosts, after.coordinator.state
    old = {**dict.fromkeys(new.hosts, HostState()), **old}
    came = {
        n: h
        for n, h in new.hosts.items()
        if h.report is not None and h.known_from and is_new(old[n], h)
    }
    holds = any(h.report.epoch or h.report.retained for h in came.values() if h.report is not None)
    is_guess = holds and not any(host.known_from for host in old.values())
    guessed = before.coordinator.state.tracker.epochs() if is_guess else {}
    numbers = _numbers(before.coordinator.state, new)
    claims = {
        s: numbers[o] for s, o in _claims(before).items() if s not in guessed and o in numbers
    }
    known = frozenset(claims)
    for name, host in sorted(
        came.items(), key=lambda item: item[1].report.epoch if item[1].report is not None else 0
    ):
        words = host.report.owners if host.report is not None else {}
        mine = new.subtasks_of(name)
        held = {s: o if o in mine else _kept(new, s, mine) for s, o in words.items()}
        claims |= {s: o for s, o in held.items() if not (old[name].known_from and s in known)}
    return {s: o for s, o in claims.items() if o < new.parallelism}


def _kept(new: CoordinatorState[Any], split_id: SplitId, mine: range) -> int:
    """The reader of a host that may have a split that it held under another number before."""
    now = new.owners.get(split_id)
    return now if now is not None and now in mine else min(mine, default=new.parallelism)


def _numbers(old: CoordinatorState[Any], new: CoordinatorState[Any]) -> Mapping[int, int]:
    """Number of each reader before a turn → its number after it.

    The k-th reader of a host remains that.
    """
    if old.members == new.members:
        return {number: number for number in range(_LARGEST)}
    width, names = len(old.members), new.members
    places = {n: (old.members[n % width], n // width) for n in range(_LARGEST)}
    return {
        n: names.index(host) + k * len(names) for n, (host, k) in places.items() if host in names
    }


def check_growth(before: Operator, after: Operator) -> None:
    """Splits that never had an owner go where least is; those that come back go where they were."""
    new, claimed = after.coordinator.state, _claims_then(before, after)
    fresh = [s for s in new.owners if s not in claimed]
    # What was read to its end is no load.
    finished = after.enumerator.state.finished
    loads = Counter(o for s, o in new.owners.items() if s not in finished)
    # What is meant for readers that are not there waits for them.
    lowest = min((loads[i] for i in after.coordinator._context.readers), default=0)
    for owner in {new.owners[s] for s in fresh}:
        if loads[owner] > lowest + 1:
            raise Violation(
                f"rule 3, balanced: reader {owner} got a new split and has {loads[owner]}, another"
                f" {lowest}"
            )


def _has_recovered(before: Operator, after: Operator) -> bool:
    """Full recovery: all hosts came through the gate together."""
    if not isinstance(after.coordinator.source, SupportsSplitReassignmentOnRecovery):
        return False
    old, new = before.coordinator.state.hosts, after.coordinator.state.hosts
    return all(
        host.phase is HostPhase.ACTIVE and name in old and is_new(old[name], host)
        for name, host in new.items()
        if host.role is not HostRole.JOINING
    )


def spread(owners: Owners, parallelism: int, *, waits: int = 0) -> int:
    """Largest minus smallest number of splits of a reader, once those that wait have owners."""
    loads = Counter(owners.values())
    counts = [loads[subtask] for subtask in range(parallelism)]
    for _ in range(waits):
        counts[counts.index(min(counts))] += 1
    return max(counts) - min(counts)


def fewest_moves(owners: Owners, total: int, parallelism: int) -> int:
    """Moves without which `total` splits cannot be balanced, when `owners` have theirs already."""
    counts = Counter(owners.values())
    base, extra = divmod(total, parallelism)
    fullest = sorted((counts[subtask] for subtask in range(parallelism)), reverse=True)
    return sum(max(0, load - base - (rank < extra)) for rank, load in enumerate(fullest))
