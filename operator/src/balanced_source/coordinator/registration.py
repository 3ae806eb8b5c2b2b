"""A host registers.

What its report, and the end of its predecessor, make of the coordinator's state.

Functions of the state alone; `recovery` decides afterwards when and how the host is let through the
gate.
"""

from collections.abc import Mapping
from dataclasses import replace

from balanced_source.api import ReaderInfo, Source, SplitId
from balanced_source.coordinator.recovery import is_blank
from balanced_source.coordinator.revocations import with_reported_positions
from balanced_source.coordinator.state import CoordinatorState, HostState, SplitT, StateT
from balanced_source.coordinator.view import visible_owners
from balanced_source.documents.assignment import Assignment
from balanced_source.documents.report import HostReport
from balanced_source.lifecycles import HOST, HostEvent, HostPhase
from balanced_source.maps import changed


def is_ahead(state: CoordinatorState[SplitT], report: HostReport) -> bool:
    """Return whether a host holds splits that the state does not know.

    Then the state is an older copy.

    A host that has registered in this lineage has only adopted epochs of it. If it holds a later
    epoch than ours, or other owners in the same epoch, someone published after our copy was made.
    """
    # Lineages only grow, so a later one was begun after our copy was made.
    if report.lineage != state.lineage:
        return report.lineage > state.lineage
    host = state.hosts.get(report.host)
    # A first registration in this lineage may bring any epoch: the host may know more than a new
    # state does.
    if host is None or not host.known_from or report.incarnation < host.incarnation:
        return False
    if report.epoch > state.epoch:
        return True
    # The same number may stand for another decision: an epoch was published after our copy was
    # made, and this driver has it in memory.
    is_acknowledgement = (
        host.phase is HostPhase.ACTIVE and host.acknowledged_epoch < report.epoch == state.epoch
    )
    is_same = report.incarnation == host.incarnation
    return is_same and is_acknowledgement and report.owners != _owners_on(state, report.host)


def is_outdated(
    state: CoordinatorState[SplitT], published: Assignment | None, lineage: int = 1
) -> bool:
    """Return whether an assignment was published that does not follow from this state.

    Then the state is an older copy.

    The state is stored before an assignment is published, so the assignment is never ahead of it.
    Where there is no assignment any more, no one can tell: then the state is not trusted either,
    unless nothing was ever decided and no document speaks of a former lineage (`lineage` is beyond
    all that were seen).
    """
    if published is None:
        return state.epoch > 0 or lineage > 1
    stored, announced = (state.lineage, state.epoch), (published.lineage, published.epoch)
    if stored != announced:
        return announced > stored
    # A restored copy may have gone its own way up to the same number.
    return published.parallelism != state.parallelism or published.owners != visible_owners(state)


def started_over(
    state: CoordinatorState[SplitT], seen: Assignment | HostReport | None = None, *, least: int = 0
) -> CoordinatorState[SplitT]:
    """Return the state in a new lineage, in which every host must register again.

    Args:
        state: an older copy.
        seen: the document that tells so; the lineage and the epoch are beyond its.
        least: of the new lineage.
    """
    # Nothing of the hosts is kept but their names: what was known of them may be of another time.
    hosts = {
        n: HostState(phase=HOST.after(h.phase, HostEvent.FORGOTTEN)) for n, h in state.hosts.items()
    }
    lineage, epoch = (seen.lineage, seen.epoch) if seen is not None else (0, 0)
    return replace(
        state,
        lineage=max(state.lineage + 1, lineage + 1, least),
        # Epochs grow over all lineages: of two hosts that hold a split, the later epoch decides.
        epoch=max(state.epoch, epoch),
        hosts=hosts,
        outbox=(),
        no_more_splits=frozenset(),
    )


def _owners_on(state: CoordinatorState[SplitT], host: str) -> Mapping[SplitId, int]:
    owners = visible_owners(state)
    # The common case, without a look at each of 100,000 splits.
    if len(state.hosts) == 1:
        return owners
    subtasks = frozenset(state.subtasks_of(host))
    return {s: o for s, o in owners.items() if o in subtasks}


def absorbed(state: CoordinatorState[SplitT], name: str) -> CoordinatorState[SplitT]:
    """Keep the predecessor's report, in case the new incarnation has lost its Spark checkpoint."""
    report = state.hosts[name].report
    if report is None:
        return state
    subtasks = frozenset(state.subtasks_of(name))
    # Only the report had the newest positions, and it is replaced by that of the new incarnation.
    known = state.splits_now(s for s, o in state.owners.items() if o in subtasks)
    state = replace(state, splits=changed(state.splits, added=known))
    # What the host has to let go of has no owner, and is nowhere else.
    return with_reported_positions(state, {name: report})


def registered(state: CoordinatorState[SplitT], report: HostReport) -> CoordinatorState[SplitT]:
    """Return the state with a new incarnation, whose report waits behind the gate."""
    before = state.hosts[report.host]
    # Should the enumerator state have been lost, the host's checkpoint still knows how far epochs
    # had come. One whose own checkpoint is empty may know of others that have one.
    is_former = not before.known_from and (not is_blank(report) or bool(report.hosts))
    waits = HostState(
        role=before.role,
        incarnation=report.incarnation,
        phase=HOST.after(before.phase, HostEvent.REGISTERED),
        report=report,
        known_from=before.known_from,
    )
    return replace(
        state,
        # A host does not adopt an epoch that is not beyond its own.
        epoch=max(state.epoch, report.epoch),
        # If one host comes from former times, others may too, and a gate waits for them.
        has_history=state.has_history or is_former,
        hosts={**state.hosts, report.host: waits},
    )


def is_too_late(state: CoordinatorState[SplitT], report: HostReport) -> bool:
    """Return whether a host brings splits of which a source without a past has known nothing.

    Others were waited for only until the deadline of the first host, and may have read them.
    """
    is_new = not state.hosts[report.host].known_from
    return state.is_first_life and is_new and state.has_reports and bool(report.positions)


def unclaimed(
    state: CoordinatorState[SplitT], source: Source[SplitT, StateT], report: HostReport
) -> dict[int, list[SplitT]]:
    """Return subtask → splits without an owner, of a report that never passed the gate."""
    subtasks = state.subtasks_of(report.host)
    unknown: dict[int, list[SplitT]] = {}
    for split_id, owner in sorted(report.owners.items()) if subtasks else ():
        if split_id not in state.owners:
            split = source.create_split(
                split_id, report.positions[split_id], report.attributes.get(split_id, {})
            )
            # The former owner may be of another parallelism, or of another host by now.
            unknown.setdefault(subtasks[owner % len(subtasks)], []).append(split)
    return unknown


def with_reported(
    state: CoordinatorState[SplitT],
    readers: Mapping[int, ReaderInfo[SplitT]],
    source: Source[SplitT, StateT],
) -> CoordinatorState[SplitT]:
    """Return the state in which readers keep the splits that they reported.

    Splits that another reader owns now are left out. Used without the opt-in of FLIP-537.
    """
    kept = {
        split.split_id: (subtask, split)
        for subtask, reader in readers.items()
        for split in reader.reported_splits
        # What was decided since the report wins, or the split would have two owners.
        if split.split_id not in state.owners and not source.deals_anew(split.split_id)
    }
    if not kept:
        return state
    return replace(
        state,
        owners=changed(state.owners, added={s: subtask for s, (subtask, _) in kept.items()}),
        splits=changed(state.splits, added={s: split for s, (_, split) in kept.items()}),
    )
