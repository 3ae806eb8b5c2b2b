"""The assignment document as a function of the coordinator's state."""

from collections.abc import Mapping

from balanced_source.api import Json, SplitId
from balanced_source.coordinator.state import CoordinatorState, SplitT
from balanced_source.documents.assignment import Assignment


def assignment_of(state: CoordinatorState[SplitT], settings: Mapping[str, Json]) -> Assignment:
    """What reader hosts shall do in `state.epoch`."""
    owners = visible_owners(state)
    since = {s: epoch for epoch, owned in state.tracker.by_checkpoint.items() for s in owned if s in owners}
    splits = state.splits if owners is state.owners else {s: state.splits[s] for s in owners}
    return Assignment(
        lineage=state.lineage,
        epoch=state.epoch,
        parallelism=state.parallelism,
        # A host that waits behind the gate is not meant yet, whatever was decided for its predecessor.
        incarnations={name: host.incarnation if host.addressed_epoch else 0 for name, host in state.hosts.items()},
        owners=owners,
        starts={s: state.position(s) for s in since},
        since=since,
        attributes={s: attributes for s, split in splits.items() if (attributes := split.attributes())},
        retained=state.retained | state.reclaimed | state.revoking.keys(),
        no_more_splits=state.no_more_splits,
        events=state.outbox,
        events_seen={name: host.events_seen for name, host in state.hosts.items()},
        settings=settings,
    )


def visible_owners(state: CoordinatorState[SplitT]) -> Mapping[SplitId, int]:
    """Owners without the splits that another host must let go of first: those are pending."""
    if not state.revoking:
        return state.owners
    return {
        split_id: owner
        for split_id, owner in state.owners.items()
        if (revocation := state.revoking.get(split_id)) is None or revocation.host == state.host_of(owner)
    }
