"""Which deleted splits the user is told about, and what may be missing of them."""

from collections.abc import Collection, Mapping

from balanced_source.api import SplitEnumeratorContext, SplitId
from balanced_source.connectors.discovery.contract import SplitDiscovery
from balanced_source.connectors.discovery.values import (
    Discovered,
    DiscoveryState,
    Initialize,
    SplitT,
    TransientState,
    begins_with,
    is_read,
    rest_of,
    some_rests,
)
from balanced_source.errors import RefusedDiscoveryError
from balanced_source.reasons import Reason


def retained_and_absent(
    scope: str,
    listed: Discovered,
    state: DiscoveryState[SplitT],
    transient: TransientState,
    source: SplitDiscovery[SplitT],
) -> frozenset[SplitId]:
    """Return splits known by retained positions only, missing in a listing, and not named yet.

    They were deleted while no one looked: their cluster was not active, or their topic not
    subscribed.
    """
    return frozenset(
        split_id
        for split_id, entry in state.retained.items()
        if split_id not in listed.split_ids
        # Each is told of once.
        and split_id not in transient.named
        and source.scope_of(split_id) == scope
        and source.subscribes(split_id)
        # Nothing is lost with a split that was read to its end.
        and not is_read(entry.split)
    )


def never_there(
    heads: Collection[SplitId],
    state: DiscoveryState[SplitT],
    context: SplitEnumeratorContext[SplitT],
) -> list[SplitId]:
    """Return those beginnings of ids with which the id of no known split begins.

    What was deleted after it had been read is not waited for.
    """
    if not heads:
        return []
    owned = context.current_assignments()
    known = [*owned, *state.unassigned, *state.finished, *state.retained]
    return [head for head in heads if not any(begins_with(s, head) for s in known)]


def unread(
    deleted: Collection[SplitId],
    state: DiscoveryState[SplitT],
    context: SplitEnumeratorContext[SplitT],
    source: SplitDiscovery[SplitT],
    *,
    exists: bool,
) -> list[str]:
    """Say what may be missing of deleted splits.

    Drivers know only of the ends that they have asked for.
    """
    known = _known(deleted, state, context)
    left = [split for s, split in known.items() if not _is_over(s, split, state)]
    return source.unread(left, exists=exists)


def read_to_end(
    deleted: Collection[SplitId],
    state: DiscoveryState[SplitT],
    context: SplitEnumeratorContext[SplitT],
) -> frozenset[SplitId]:
    """Return the deleted splits of which nothing is left to be read, as far as reports tell."""
    known = _known(deleted, state, context)
    return frozenset(s for s, split in known.items() if _is_over(s, split, state))


def _is_over(split_id: SplitId, split: SplitT, state: DiscoveryState[SplitT]) -> bool:
    return split_id in state.finished or is_read(split)


def _known(
    deleted: Collection[SplitId],
    state: DiscoveryState[SplitT],
    context: SplitEnumeratorContext[SplitT],
) -> dict[SplitId, SplitT]:
    retained = {s: state.retained[s].split for s in deleted if s in state.retained}
    # The owner's position is the newest, so it replaces what was retained.
    return retained | _given_out_or_waiting(deleted, state, context)


def cut_short(
    deleted: Collection[SplitId],
    state: DiscoveryState[SplitT],
    context: SplitEnumeratorContext[SplitT],
    source: SplitDiscovery[SplitT],
) -> Mapping[SplitId, SplitT]:
    """Return deleted splits that have a stop and were not read to it, as far as reports tell.

    None if the source may lose records. A reader may have read more than it has reported, so the
    driver decides: a split stays until its reader has reached the stop, or the user gives it up.
    """
    if source.may_lose:
        return {}
    held = _given_out_or_waiting(deleted, state, context)
    return {s: x for s, x in held.items() if s not in state.finished and rest_of(x) is not None}


def _given_out_or_waiting(
    deleted: Collection[SplitId],
    state: DiscoveryState[SplitT],
    context: SplitEnumeratorContext[SplitT],
) -> dict[SplitId, SplitT]:
    owned = context.current_assignments()
    waiting = {s: state.unassigned[s] for s in deleted if s in state.unassigned}
    return waiting | {s: context.assigned_split(s) for s in deleted if s in owned}


def loss(scope: str, splits: Collection[SplitT]) -> RefusedDiscoveryError:
    """Return the problem that deleted splits were not read to their stop."""
    return RefusedDiscoveryError(
        f"{some_rests(splits)}: deleted before being read to the end, as far as reports tell."
        " Restore what is gone, or allow the source to lose records",
        scope=scope,
        reason=Reason.SPLITS_LOST,
    )


def before_start(
    splits: Collection[SplitT],
    discovered: Collection[str],
    call: Initialize,
    source: SplitDiscovery[SplitT],
) -> list[str]:
    """Return sentences that name what is lost before the start of new splits.

    Args:
        splits: at their start.
        discovered: scopes whose first discovery is complete.
        call: that found the start.
        source: of the splits.
    """
    is_later = call.scope in discovered
    return source.begun_late(splits) if is_later else source.begun_elsewhere(splits)
