"""How a reader host takes an assignment into its stream offset."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace

from balanced_source.api import Position, SplitId, is_other
from balanced_source.documents.assignment import Assignment
from balanced_source.documents.journal import JournalPoint
from balanced_source.documents.storage import in_host_order
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.errors import ContractViolationError
from balanced_source.names import split_name


def adopt(offset: StreamOffset, assignment: Assignment, *, host: str) -> StreamOffset:
    """The offset from which the first micro-batch of the new epoch continues.

    Positions come from the reader: what the host holds continues where it is. A split that was
    assigned after the host's last adoption starts at the assignment's position, whatever the host
    has by that name; only where the assignment names it as retained the newer of both counts: the
    operator may not have heard of the last progress before it took the split away. Positions of a
    former split of the same id, e.g. of a topic that was recreated, never count.

    Raises:
        ContractViolationError: a split has no position anywhere; adopting would lose or repeat
            records.
    """
    owned = owned_by(assignment, host)
    fresh = {s: _start(offset, assignment, s) for s in owned if not _goes_on(offset, assignment, s)}
    positions = {s: fresh[s] if s in fresh else offset.positions[s] for s in owned}
    # A host that gives a split away keeps its position until the next host has it, or no one but
    # the operator would know it.
    held = {**offset.retained, **offset.positions}
    retained = {s: held[s] for s in _kept(assignment) if s in held and s not in owned}
    # A leadership belongs to a position. At another one, or in another log, it would hide a cut.
    # What is retained keeps it: the log may be cut, and grow again, while no one reads it.
    unmoved = {
        s
        for s in offset.terms
        if s in retained
        or (s in owned and positions[s] == held.get(s) and _is_same(offset, assignment, s))
    }
    return StreamOffset(
        epoch=assignment.epoch,
        parallelism=assignment.parallelism,
        readers=tuple(readers_on(assignment, host)),
        owners=owned,
        positions=positions,
        starts=fresh,
        retained=retained,
        terms={s: term for s, term in offset.terms.items() if s in unmoved},
        term_ends={s: ends for s, ends in offset.term_ends.items() if s in unmoved},
        attributes={
            **{s: a for s, a in offset.attributes.items() if s in retained},
            # The assignment wins for owned splits: stops and identities are decided there.
            **{s: a for s, a in assignment.attributes.items() if s in owned},
        },
        journal=_kept_journal(offset.journal, owned.keys() - fresh.keys()),
        hosts=_holders(assignment),
    )


def _kept(assignment: Assignment) -> frozenset[SplitId]:
    """Splits whose position a host keeps unless it reads them.

    A split on its way to another host is one of them until that host has acknowledged it. Otherwise
    only the operator would know the position, and it would be gone if the operator's state were
    lost.
    """
    return assignment.retained.union(assignment.since)


def go_on(offset: StreamOffset) -> StreamOffset:
    """The offset from which a further micro-batch of the same epoch continues."""
    # Starts count in the micro-batch that adopts an epoch only. Repeated, they would read records
    # again.
    return replace(offset, starts={}, closings=0) if offset.starts or offset.closings else offset


def readers_on(assignment: Assignment, host: str) -> range:
    """Readers that run on `host`.

    Reader i runs on host i mod (number of hosts), without those that are idle.
    """
    names = _busy_hosts(assignment)
    return (
        range(names.index(host), assignment.parallelism, len(names)) if host in names else range(0)
    )


def _busy_hosts(assignment: Assignment) -> tuple[str, ...]:
    return tuple(
        name for name in in_host_order(assignment.incarnations) if name not in assignment.idle_hosts
    )


def _holders(assignment: Assignment) -> tuple[str, ...]:
    """Hosts that may hold something, in their order; empty if there is one only.

    One that is to come holds nothing. One that leaves may, although it has no readers.
    """
    names = tuple(
        name
        for name in in_host_order(assignment.incarnations)
        if assignment.incarnations[name] or name not in assignment.idle_hosts
    )
    return names if len(names) > 1 else ()


def owned_by(assignment: Assignment, host: str) -> Mapping[SplitId, int]:
    """Splits of the readers that run on `host`."""
    # One host is the common case: the table serves as it is.
    if _busy_hosts(assignment) == (host,):
        return assignment.owners
    readers = frozenset(readers_on(assignment, host))
    return {s: o for s, o in assignment.owners.items() if o in readers}


def _kept_journal(
    point: JournalPoint | None, split_ids: AbstractSet[SplitId]
) -> JournalPoint | None:
    """What stays true of a journal: a split that starts again is not finished."""
    if point is None:
        return None
    read_up_to = {s: time for s, time in point.read_up_to.items() if s in split_ids}
    return replace(point, finished=point.finished & split_ids, read_up_to=read_up_to)


def _goes_on(offset: StreamOffset, assignment: Assignment, split_id: SplitId) -> bool:
    # What was assigned later is new to this host, whatever it holds by that name: the split moved
    # away and back, or was recreated.
    is_held = split_id in offset.positions and assignment.since.get(split_id, 0) <= offset.epoch
    return is_held and _is_same(offset, assignment, split_id)


def _is_same(offset: StreamOffset, assignment: Assignment, split_id: SplitId) -> bool:
    return not is_other(
        offset.attributes.get(split_id, {}), assignment.attributes.get(split_id, {})
    )


def _start(offset: StreamOffset, assignment: Assignment, split_id: SplitId) -> Position:
    is_kept = split_id in assignment.retained and _is_same(offset, assignment, split_id)
    # The operator may not have heard of the last progress before it took the split away.
    own = (offset.positions, offset.retained) if is_kept else ()
    tables = (*own, assignment.starts)
    known = [table[split_id] for table in tables if split_id in table]
    if not known:
        # A guess would lose or repeat records.
        raise ContractViolationError(
            f"epoch {assignment.epoch} assigns split {split_name(split_id)} without a position"
        )
    # Of the same split the newer position counts: it has one reader at a time, so positions only
    # grow.
    return max((position for position in known if position is not None), default=None)
