"""Which hosts run readers, and what a change of hosts does to readers and splits.

Readers have numbers from 0 to parallelism − 1 in the whole source. Reader i runs on member i mod
(number of members). When a member comes or goes, the readers of the other members get new numbers,
and the splits stay where they are: the k-th reader of a host remains its k-th reader. Only splits
of readers that their host no longer has are dealt again.

A host that is added gets readers when its driver has registered, so a host that cannot start costs
nothing. A host that is removed runs no readers any more; it is forgotten when it has let go of its
splits and their next hosts have them. A host that is lost for long can be given up: it is treated
as if it were removed, and added again when it is forgotten. One that is lost while it leaves can be
given up, too.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from balanced_source.api import SplitId
from balanced_source.coordinator.context import CoordinatorContext
from balanced_source.coordinator.events import HostGivenUp, HostOverdue, HostsChanged
from balanced_source.coordinator.state import CoordinatorState, HostRole, HostState, SplitT, run_by
from balanced_source.documents.report import HostReport
from balanced_source.documents.storage import in_host_order
from balanced_source.errors import ContractViolationError
from balanced_source.lifecycles import HostPhase
from balanced_source.names import counted

Hosts = Mapping[str, HostState]


def check_positive(parallelism: int, hosts: Sequence[str]) -> None:
    """Check what the user wants.

    Raises:
        ContractViolationError: there would be no reader, or no host.
    """
    if parallelism < 1 or not hosts:
        raise ContractViolationError(
            f"parallelism {parallelism} with {counted(len(hosts), 'host')}: both must be at least 1"
        )


def first_state(
    parallelism: int, hosts: Sequence[str], *, lineage: int
) -> CoordinatorState[SplitT]:
    """Return the state of a coordinator that begins without a stored one.

    Raises:
        ContractViolationError: there would be no reader, or no host.
    """
    check_positive(parallelism, hosts)
    return CoordinatorState(
        lineage=lineage,
        parallelism=parallelism,
        hosts=in_host_order(dict.fromkeys(hosts, HostState())),
    )


def after(state: CoordinatorState[SplitT], event: HostsChanged | HostOverdue) -> Hosts:
    """Return the hosts after an event that concerns only the hosts."""
    match event:
        case HostsChanged():
            return with_wanted(state, event.hosts)
        case HostOverdue():
            return without_overdue(state, event.host)


def with_wanted(state: CoordinatorState[SplitT], wanted: Sequence[str]) -> Hosts:
    """Return the hosts after the user changed the set of hosts.

    A removed host without splits is dropped at once.
    """
    check_positive(state.parallelism, wanted)
    kept = {name: _kept(host, is_wanted=name in wanted) for name, host in state.hosts.items()}
    hosts = {name: host for name, host in kept.items() if host is not None}
    # A host that is added has no readers until its driver has registered. So one that cannot start
    # costs nothing.
    hosts |= {name: HostState(role=HostRole.JOINING) for name in wanted if name not in hosts}
    # All members are gone at once. Someone must have readers, and one that runs can begin now.
    if not _members(hosts):
        first = next((name for name in wanted if hosts[name].phase is HostPhase.ACTIVE), wanted[0])
        hosts[first] = replace(hosts[first], role=HostRole.MEMBER)
    return in_host_order(hosts)


def _kept(host: HostState, *, is_wanted: bool) -> HostState | None:
    """The host in the role that follows.

    None for one that has not come and is not wanted any more.
    """
    # Its drain attempt settles what it has delivered, which is needed whoever reads on. It leaves
    # when it has drained, and is added again if it is wanted then.
    if host.role is HostRole.DRAINING:
        return host
    is_expected = host.phase is HostPhase.EXPECTED
    if not is_wanted:
        # It had no readers, and no one registered for it, so there is nothing to wait for.
        has_nothing = is_expected and host.role is HostRole.JOINING
        return None if has_nothing else replace(host, role=HostRole.LEAVING)
    if host.role is not HostRole.LEAVING:
        return host
    # One that has not passed a gate in this lineage may hold splits: a gate waits for it, and its
    # readers keep them.
    return replace(host, role=HostRole.JOINING if host.known_from else HostRole.MEMBER)


def without_overdue(state: CoordinatorState[SplitT], name: str) -> Hosts:
    """Return the hosts after one has not registered in time.

    The other hosts run its readers until it registers.

    Nothing changes unless the host certainly holds nothing, and another one is there to take over.
    """
    host = state.hosts.get(name)
    others = [h for n, h in state.hosts.items() if n != name and h.role is HostRole.MEMBER]
    # Without another host that has registered, its splits would wait for the same thing elsewhere.
    is_there = any(other.phase is not HostPhase.EXPECTED for other in others)
    if (
        host is None
        or host.role is not HostRole.MEMBER
        or not _holds_nothing(state, name)
        or not is_there
    ):
        return state.hosts
    return {**state.hosts, name: replace(host, role=HostRole.JOINING)}


def without_lost(state: CoordinatorState[SplitT], event: HostGivenUp) -> Hosts:
    """Return the hosts after a lost one was given up: the other hosts run its readers.

    One that is removed has no readers any more, but its next driver may never come.

    Nothing changes if the host has registered again, or unless another host is there to take over.
    """
    name, host = event.host, state.hosts.get(event.host)
    if (
        host is None
        # Another attempt has registered: it tells by itself where it stopped, and reads on.
        or host.incarnation != event.incarnation
        # One that joins has nothing yet, and one that drains was given up before, unless the user
        # accepts duplicates by now.
        or host.role is HostRole.JOINING
        or (host.role is HostRole.DRAINING and not event.accepts_duplicates)
        # A host behind the gate is back. One that holds nothing is overdue, another event.
        or host.phase is HostPhase.RECOVERING
        or _holds_nothing(state, name)
    ):
        return state.hosts
    is_unheard = host.phase is HostPhase.EXPECTED
    # Hosts that have not passed the gate cannot take over anything, unless it waits for this one.
    able = (HostPhase.ACTIVE, HostPhase.RECOVERING) if is_unheard else (HostPhase.ACTIVE,)
    others = (h for n, h in state.hosts.items() if n != name and h.role is HostRole.MEMBER)
    if not any(other.phase in able for other in others):
        return state.hosts
    # With exactly-once delivery only its next attempt can tell which records reached the sink. Of a
    # host that was not heard since the state was lost, nobody knows any position.
    if is_unheard:
        return {**state.hosts, name: replace(host, role=HostRole.DRAINING)}
    # It has no more to say, and is not wanted: no one waits for another attempt.
    if event.accepts_duplicates and host.role is HostRole.LEAVING:
        return {n: h for n, h in state.hosts.items() if n != name}
    role = HostRole.JOINING if event.accepts_duplicates else HostRole.DRAINING
    return {**state.hosts, name: replace(host, role=role, phase=HostPhase.LOST)}


def followed(state: CoordinatorState[SplitT]) -> Hosts:
    """Return the hosts, with those that have registered or released their splits updated."""
    # Each turn ends here, and in most sources no host comes or goes.
    if all(host.role is HostRole.MEMBER for host in state.hosts.values()):
        return state.hosts
    uncovered = state.tracker.epochs().keys()
    return {
        name: _joined(host)
        for name, host in state.hosts.items()
        if not (host.is_on_its_way_out and _has_let_go(state, name, uncovered))
    }


def _joined(host: HostState) -> HostState:
    has_come = host.role is HostRole.JOINING and host.phase is HostPhase.ACTIVE
    return replace(host, role=HostRole.MEMBER) if has_come else host


def _holds_nothing(state: CoordinatorState[SplitT], name: str) -> bool:
    """Whether a host has never registered, and no former Spark checkpoint can hold its splits."""
    host = state.hosts[name]
    return host.phase is HostPhase.EXPECTED and not host.known_from and state.is_first_life


def _has_let_go(
    state: CoordinatorState[SplitT], name: str, uncovered: AbstractSet[SplitId]
) -> bool:
    """Whether a host holds no split and no position that its split's next host has yet to adopt."""
    # It may still read these: only its acknowledgement says where it stopped.
    if any(revocation.host == name for revocation in state.revoking.values()):
        return False
    host = state.hosts[name]
    # Without an acknowledgement no one knows what it holds, unless it can hold nothing.
    if host.report is None or not host.acknowledged_epoch:
        return _holds_nothing(state, name)
    # Until the next host has adopted a split, this host's Spark checkpoint alone has its position.
    return not host.report.positions and uncovered.isdisjoint(host.report.retained)


def with_all(state: CoordinatorState[SplitT], names: Sequence[str]) -> CoordinatorState[SplitT]:
    """Return the state with hosts that an older copy does not know, and that may hold splits."""
    missing = {name: HostState() for name in names if name not in state.hosts}
    return replace(state, hosts=in_host_order({**state.hosts, **missing})) if missing else state


def with_former(state: CoordinatorState[SplitT], report: HostReport) -> Hosts:
    """Return the hosts with those that a state without any past learns of from a first report.

    The documents were lost, and the user may want fewer hosts than there were. What the others hold
    is needed before anything is given out, so they start once more, and leave.

    Nothing changes as soon as a host has passed the gate: from then on the state knows all hosts.
    """
    if state.has_reports:
        return state.hosts
    leaving = HostState(role=HostRole.LEAVING)
    missing = {name: leaving for name in report.hosts if name not in state.hosts}
    return in_host_order({**state.hosts, **missing}) if missing else state.hosts


def change(
    context: CoordinatorContext[SplitT], hosts: Hosts
) -> tuple[dict[int, list[SplitT]], dict[int, int]]:
    """Apply a change of hosts.

    Splits are revoked from their holders, and the context's readers are renumbered.

    Returns:
        The splits that need another reader, by the former number of the one that had them; and the
        number of each reader before → after, without those that no longer exist.
    """
    before, after = context.state, replace(context.state, hosts=hosts)
    # Whether a host without readers comes or goes is not in the assignment.
    context.turn.is_changed |= (
        hosts.keys() != before.hosts.keys() or after.members != before.members
    )
    numbers = renumbered(before.members, after.members, before.parallelism)
    homeless = [s for s, owner in before.owners.items() if owner not in numbers]
    # Positions are read before the revocation, which forgets owners and splits.
    orphans: dict[int, list[SplitT]] = {}
    for split_id, split in before.splits_now(homeless).items():
        orphans.setdefault(before.owners[split_id], []).append(split)
    # Until the splits have owners again, the hosts keep the positions: the state may be lost.
    context.revoke_splits(homeless, retain=True)
    # After the revocation, which looks for the holders by the former numbers.
    context.state = _renumbered(replace(context.state, hosts=hosts), numbers)
    context.renumber_readers(numbers)
    return orphans, numbers


def renumbered(before: Sequence[str], after: Sequence[str], parallelism: int) -> dict[int, int]:
    """Return the number of each reader when other hosts run the readers: before → after.

    Readers that their host no longer has are left out.

    Args:
        before: names of the hosts that run readers, in their order.
        after: the same, then.
        parallelism: number of readers, which stays.
    """
    pairs = (
        # The k-th reader of a host remains its k-th. By number modulo hosts, most splits would move
        # between hosts for nothing.
        zip(run_by(n, before, parallelism), run_by(n, after, parallelism), strict=False)
        for n in before
    )
    return {old: new for pair in pairs for old, new in pair}


def _renumbered(
    state: CoordinatorState[SplitT], numbers: Mapping[int, int]
) -> CoordinatorState[SplitT]:
    # A host without readers came or went: no number changes, and no table need be copied.
    if all(old == new for old, new in numbers.items()) and len(numbers) == state.parallelism:
        return state
    return replace(
        state,
        owners={s: numbers[o] for s, o in state.owners.items()},
        tracker=state.tracker.renumbered(numbers),
        no_more_splits=frozenset(numbers[s] for s in state.no_more_splits if s in numbers),
        outbox=tuple(
            replace(e, subtask_id=numbers[e.subtask_id])
            for e in state.outbox
            if e.subtask_id in numbers
        ),
    )


def _members(hosts: Hosts) -> list[str]:
    return [name for name, host in hosts.items() if host.role is HostRole.MEMBER]
