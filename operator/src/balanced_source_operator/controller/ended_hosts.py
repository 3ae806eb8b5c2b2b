"""What a host of a bounded source has still to read when its application has ended."""

from collections.abc import Sequence
from typing import Any

from balanced_source.api import Source, SplitId
from balanced_source.coordinator import CoordinatorState, HostPhase, HostRole
from balanced_source.coordinator.finished import is_at_end
from balanced_source.coordinator.state import reported_position
from balanced_source_operator.controller.application_facts import ApplicationState, state_of
from balanced_source_operator.kube.port import Manifest


def unread(
    state: CoordinatorState[Any], source: Source[Any, Any], name: str
) -> frozenset[SplitId] | None:
    """Return the splits that a host owns or still holds, and that are not read to their end.

    None if it is unknown what the host holds: it was not heard since the state was lost.
    """
    host = state.hosts.get(name)
    if host is None:
        return frozenset()
    report = host.report
    if host.phase is HostPhase.EXPECTED or report is None:
        # A host that joins has no splits yet.
        return frozenset() if host.role is HostRole.JOINING else None
    readers = frozenset(state.subtasks_of(name))
    owned = state.splits_now(s for s, owner in state.owners.items() if owner in readers)
    held = {
        s: revocation.split.at(reported_position(report, revocation.split))
        for s, revocation in state.revoking.items()
        if revocation.host == name
    }
    has_ends = source.has_ending_splits
    splits = {**owned, **held}
    return frozenset(
        s for s, split in splits.items() if not (has_ends and is_at_end(split, report))
    )


def has_read_all(
    state: CoordinatorState[Any],
    source: Source[Any, Any],
    name: str,
    applications: Sequence[Manifest],
) -> bool:
    """Return whether the application of a host has ended in order, with nothing left to read."""
    has_ended = bool(applications) and all(
        state_of(application) is ApplicationState.FINISHED for application in applications
    )
    return has_ended and unread(state, source, name) == frozenset()


def is_waited_for(state: CoordinatorState[Any], name: str) -> bool:
    """Return whether another host could have splits as soon as a host has let go of them."""
    others = [state.hosts[member] for member in state.members if member != name]
    is_asked = state.hosts[name].role is HostRole.LEAVING or any(
        revocation.host == name for revocation in state.revoking.values()
    )
    return is_asked and any(other.phase is HostPhase.ACTIVE for other in others)
