"""What a change of the source moves between readers and between hosts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from balanced_source.api import RebalanceCause, SplitId
from balanced_source.assigners import Layout, Move, Plan, Wish, plan
from balanced_source.coordinator.membership import renumbered
from balanced_source.coordinator.state import run_by, runs_on


@dataclass(frozen=True, slots=True, kw_only=True)
class HostPlan(Plan):
    """A plan, and where the readers run.

    A move is a split that gets another reader. When hosts come or go, readers get other numbers; a
    split that stays with its reader does not move.

    Attributes:
        hosts_before: names of the hosts that run readers now, in their order.
        hosts_after: the same, when all wanted hosts have started.
    """

    hosts_before: tuple[str, ...]
    hosts_after: tuple[str, ...]

    @property
    def splits_before(self) -> dict[str, int]:
        """Number of splits of each host now."""
        return _per_host(self.before.splits, self.hosts_before)

    @property
    def splits_after(self) -> dict[str, int]:
        """Number of splits of each host then."""
        return _per_host(self.after.splits, self.hosts_after)

    @property
    def has_several(self) -> bool:
        """Whether there are several hosts, now or then."""
        return len(self.hosts_before) > 1 or len(self.hosts_after) > 1

    @property
    def moved_between_hosts(self) -> int:
        """Number of splits that get another host."""
        hosts = (
            (runs_on(move.before, self.hosts_before), runs_on(move.after, self.hosts_after))
            for move in self.moves
            if move.before is not None
        )
        return sum(before != after for before, after in hosts)


def plan_hosts(
    current: Layout, wish: Wish, *, before: tuple[str, ...], after: tuple[str, ...]
) -> HostPlan:
    """Return what a change moves, in the order in which the coordinator does it.

    The readers change first, on the hosts that run. Hosts that are removed hand their splits over,
    and hosts that are added get readers when they have started.

    Args:
        current: who reads what.
        wish: what is wanted.
        before: names of the hosts that run readers, in their order.
        after: names of the wanted hosts.

    Raises:
        ContractViolationError: `wish.parallelism` is below 1.
    """
    found = plan(current, wish)
    if after != before:
        numbers = renumbered(before, after, wish.parallelism)
        kept = {s: numbers[o] for s, o in found.owners.items() if o in numbers}
        layout = replace(
            current,
            parallelism=wish.parallelism,
            owners=kept,
            pending=[s for s in found.owners if s not in kept],
        )
        then = plan(layout, replace(wish, causes=[RebalanceCause.RESCALE], unwanted=()))
        found = replace(found, owners=then.owners, after=then.after)
    return HostPlan(
        owners=found.owners,
        moves=tuple(_moves(current.owners, found.owners, before, after)),
        dropped=found.dropped,
        before=found.before,
        after=found.after,
        hosts_before=before,
        hosts_after=after,
    )


def _moves(
    owners: Mapping[SplitId, int],
    then: Mapping[SplitId, int],
    before: Sequence[str],
    after: Sequence[str],
) -> list[Move]:
    return [
        Move(split_id=s, before=owners.get(s), after=then[s])
        for s in sorted(then)
        if s not in owners or _place(owners[s], before) != _place(then[s], after)
    ]


def _place(reader: int, hosts: Sequence[str]) -> tuple[str, int]:
    """Return the host of a reader, and which of the host's readers it is."""
    return runs_on(reader, hosts), reader // len(hosts)


def _per_host(splits: Sequence[int], hosts: Sequence[str]) -> dict[str, int]:
    """Return the number of splits of each host, from those of each reader."""
    return {
        host: sum(splits[reader] for reader in run_by(host, hosts, len(splits))) for host in hosts
    }
