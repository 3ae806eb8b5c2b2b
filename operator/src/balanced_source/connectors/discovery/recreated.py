"""Splits that were deleted and created again.

They have the ids of the former ones, and are other splits.
"""

from collections.abc import Collection, Mapping

from balanced_source.api import IDENTITY, SplitEnumeratorContext, SplitId, is_other
from balanced_source.connectors.discovery.contract import SplitDiscovery
from balanced_source.connectors.discovery.gone import read_to_end, unread
from balanced_source.connectors.discovery.values import DiscoveryState, SplitT, some
from balanced_source.errors import RefusedDiscoveryError
from balanced_source.names import counted
from balanced_source.reasons import Reason


def replaced(
    identities: Mapping[SplitId, str],
    state: DiscoveryState[SplitT],
    context: SplitEnumeratorContext[SplitT],
) -> frozenset[SplitId]:
    """Return the ids under which something else is known than what has these identities now."""
    return frozenset(
        s for s, identity in identities.items() if _is_former(s, identity, state, context)
    )


def _is_former(
    split_id: SplitId,
    identity: str,
    state: DiscoveryState[SplitT],
    context: SplitEnumeratorContext[SplitT],
) -> bool:
    attributes = {IDENTITY: identity}
    # Attributes only, because this is asked for each listed split: the newest position costs more.
    if split_id in context.current_assignments():
        return is_other(context.assigned_attributes(split_id), attributes)
    retained = state.retained.get(split_id)
    split = state.unassigned.get(split_id) or (retained.split if retained is not None else None)
    return split is not None and is_other(split.attributes(), attributes)


def lost(
    split_ids: frozenset[SplitId],
    state: DiscoveryState[SplitT],
    context: SplitEnumeratorContext[SplitT],
    source: SplitDiscovery[SplitT],
) -> frozenset[SplitId]:
    """Return the recreated splits of which records may be lost, unless the user has agreed.

    Nothing is lost with a former split that was read to its end.
    """
    if source.may_lose:
        return frozenset()
    return split_ids - read_to_end(split_ids, state, context)


def refusal(
    scope: str,
    split_ids: Collection[SplitId],
    state: DiscoveryState[SplitT],
    context: SplitEnumeratorContext[SplitT],
    source: SplitDiscovery[SplitT],
) -> RefusedDiscoveryError:
    """Return why recreated splits are not read.

    Records of the former ones are lost, and the user has to agree.
    """
    advice = f"{source.recreation_advice()} to read what exists now"
    lost = ". ".join(unread(split_ids, state, context, source, exists=True))
    return RefusedDiscoveryError(
        f"{counted(len(split_ids), 'split')} deleted and recreated, and not read:"
        f" {some(sorted(split_ids))}. What was not read before that is lost: {advice}."
        f" {lost}",
        scope=scope,
        reason=Reason.SPLITS_RECREATED,
        is_fatal=source.losses_are_fatal,
    )
