"""A host registers: what its report, and the end of its predecessor, make of the coordinator's state.

Functions of the state alone; `recovery` decides afterwards when and how the host is let through the gate.
"""

from collections.abc import Mapping
from dataclasses import replace

from balanced_source.api import ReaderInfo, Source
from balanced_source.coordinator.recovery import is_blank
from balanced_source.coordinator.state import CoordinatorState, HostState, SplitT, StateT
from balanced_source.documents.report import HostReport
from balanced_source.lifecycles import HOST, HostEvent
from balanced_source.maps import changed


def is_ahead(state: CoordinatorState[SplitT], report: HostReport) -> bool:
    """Whether a host holds something of ours that we do not know: then our state is an older copy."""
    if report.lineage > state.lineage:
        return True
    host = state.hosts.get(report.host)
    is_known = host is not None and 0 < report.incarnation == host.incarnation
    return is_known and report.lineage == state.lineage and report.epoch > state.epoch


def started_over(state: CoordinatorState[SplitT], report: HostReport) -> CoordinatorState[SplitT]:
    """What is known about hosts is not true any more: all of them register again, in a new lineage."""
    hosts = {n: HostState(phase=HOST.after(h.phase, HostEvent.FORGOTTEN)) for n, h in state.hosts.items()}
    lineage, epoch = max(state.lineage, report.lineage) + 1, max(state.epoch, report.epoch)
    return replace(state, lineage=lineage, epoch=epoch, hosts=hosts, outbox=())


def absorbed(state: CoordinatorState[SplitT], name: str) -> CoordinatorState[SplitT]:
    """What the predecessor reported stays known, should the new incarnation have lost its Spark checkpoint."""
    report = state.hosts[name].report
    if report is None:
        return state
    mine = frozenset(state.subtasks_of(name))
    known = state.splits_now(s for s, o in state.owners.items() if o in mine)
    return replace(state, splits=changed(state.splits, added=known))


def registered(state: CoordinatorState[SplitT], report: HostReport) -> CoordinatorState[SplitT]:
    """With the report of a new incarnation behind the gate."""
    before = state.hosts[report.host]
    # Should the enumerator state have been lost, the host's checkpoint still knows how far epochs had come.
    is_former = not before.known_from and not is_blank(report)
    waits = HostState(
        incarnation=report.incarnation,
        phase=HOST.after(before.phase, HostEvent.REGISTERED),
        report=report,
        known_from=before.known_from,
    )
    return replace(
        state,
        epoch=max(state.epoch, report.epoch),
        has_history=state.has_history or is_former,
        hosts={**state.hosts, report.host: waits},
    )


def unclaimed(
    state: CoordinatorState[SplitT], source: Source[SplitT, StateT], report: HostReport
) -> dict[int, list[SplitT]]:
    """Subtask → splits that nobody owns, of a report that never passed the gate."""
    subtasks = state.subtasks_of(report.host)
    unknown: dict[int, list[SplitT]] = {}
    for split_id, owner in sorted(report.owners.items()) if subtasks else ():
        if split_id not in state.owners:
            split = source.create_split(split_id, report.positions[split_id], report.attributes.get(split_id, {}))
            unknown.setdefault(subtasks[owner % len(subtasks)], []).append(split)
    return dict(sorted(unknown.items()))


def with_reported(
    state: CoordinatorState[SplitT], readers: Mapping[int, ReaderInfo[SplitT]]
) -> CoordinatorState[SplitT]:
    """Without the opt-in of FLIP-537 a reader keeps what it reported, unless somebody else has it now."""
    kept = {
        split.split_id: (subtask, split)
        for subtask, reader in readers.items()
        for split in reader.reported_splits
        if split.split_id not in state.owners
    }
    return replace(
        state,
        owners=changed(state.owners, added={s: subtask for s, (subtask, _) in kept.items()}),
        splits=changed(state.splits, added={s: split for s, (_, split) in kept.items()}),
    )
