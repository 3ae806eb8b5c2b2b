"""The assignment document as a function of the coordinator's state."""

import itertools
from collections.abc import Collection, Mapping
from typing import Any

from balanced_source.api import Json, Source, SourceSplit, SplitId
from balanced_source.api.json_values import JSON, json_fault
from balanced_source.coordinator.state import CoordinatorState, HostRole, SplitT
from balanced_source.documents import envelope
from balanced_source.documents.assignment import Assignment
from balanced_source.errors import ContractViolationError, in_short
from balanced_source.maps import changed, replaced

Attributes = Mapping[SplitId, Mapping[str, Json]]


class AttributeTable:
    """Attributes of all owned splits.

    Recomputes only those of splits whose objects have changed.

    As long as nothing is different it stays the same object, so that a caller that compares two
    versions sees it at once.
    """

    def __init__(self) -> None:
        self._splits: Mapping[SplitId, SourceSplit] = {}
        self._attributes: Attributes = {}

    def fork(self) -> "AttributeTable":
        """Return an independent copy. Both parts are replaced, never changed."""
        copy = AttributeTable()
        copy._splits, copy._attributes = self._splits, self._attributes
        return copy

    def of(self, splits: Mapping[SplitId, SourceSplit]) -> Attributes:
        """Split → attributes, of those splits that have any."""
        before = self._splits
        # Tables are replaced, never changed, so the same object has the same attributes.
        if splits is before:
            return self._attributes
        self._splits = splits
        fresh = {s: split.attributes() for s, split in replaced(before, splits)}
        gone = (
            ()
            if len(before) == len(splits) - _count_new(fresh, before)
            else before.keys() - splits.keys()
        )
        self._attributes = self._with(fresh, gone)
        return self._attributes

    def _with(self, fresh: Attributes, gone: Collection[SplitId]) -> Attributes:
        known = self._attributes
        added = {
            s: attributes
            for s, attributes in fresh.items()
            if attributes and known.get(s) != attributes
        }
        dropped = [
            s
            for s in itertools.chain(gone, (s for s, attributes in fresh.items() if not attributes))
            if s in known
        ]
        # The same object when nothing is different: whoever compares two versions sees it at once.
        return changed(known, added=added, dropped=dropped) if added or dropped else known


def _count_new(fresh: Collection[SplitId], before: Mapping[SplitId, SourceSplit]) -> int:
    return sum(s not in before for s in fresh)


def assignment_of(
    state: CoordinatorState[SplitT],
    settings: Mapping[str, Json],
    table: AttributeTable | None = None,
) -> Assignment:
    """Return the assignment of `state.epoch`.

    The `table` of an earlier assignment makes this faster.
    """
    owners = visible_owners(state)
    # What its host has not adopted needs a start, and its epoch: what the host holds by that name
    # from before is of former times.
    since = {
        s: epoch
        for epoch, owned in state.tracker.by_checkpoint.items()
        for s in owned
        if s in owners
    }
    attributes = (table or AttributeTable()).of(state.splits)
    return Assignment(
        lineage=state.lineage,
        epoch=state.epoch,
        parallelism=state.parallelism,
        # A host that waits behind the gate is not meant yet, whatever was decided for its
        # predecessor.
        incarnations={
            name: host.incarnation if host.addressed_epoch else 0
            for name, host in state.hosts.items()
        },
        idle_hosts=frozenset(
            name for name, host in state.hosts.items() if host.role is not HostRole.MEMBER
        ),
        owners=owners,
        # Only these: what a host has adopted continues at the host's own position.
        starts=state.positions(since),
        since=since,
        # The whole table where every split is visible, so that it need not be copied.
        attributes=attributes
        if owners is state.owners
        else {s: attributes[s] for s in owners if s in attributes},
        # Also what is on its way: the host that lets go keeps the position, should the state be
        # lost.
        retained=state.retained | state.reclaimed | state.revoking.keys(),
        no_more_splits=_without_pending(state, owners),
        events=state.outbox,
        events_seen={name: host.events_seen for name, host in state.hosts.items()},
        settings=settings,
    )


def digest_of_settings(source: Source[Any, Any]) -> str:
    """Return a short text that is the same for equal `Source.reader_settings`.

    Raises:
        ContractViolationError: the settings are not JSON, and could not be published, or lack the
            kind of the source as a key, and no query could read them.
    """
    settings: object = source.reader_settings()
    why = f"it is a {type(settings).__name__}"
    if isinstance(settings, Mapping):
        try:
            digest = envelope.digest(settings)
        except (TypeError, ValueError, RecursionError) as error:
            why = json_fault(settings) or in_short(error)
        else:
            _check_kind(source, settings)
            return digest
    raise ContractViolationError(
        f"reader_settings of the source returned what is not JSON: {why}. Return {JSON}"
    )


def _check_kind(source: Source[Any, Any], settings: Mapping[str, Any]) -> None:
    if settings and source.kind not in settings:
        raise ContractViolationError(
            f"reader_settings of the source returned the keys {', '.join(settings)}, and its kind"
            f" {source.kind!r} is none of them. Return {{kind: settings}}"
        )


def _without_pending(
    state: CoordinatorState[SplitT], visible: Mapping[SplitId, int]
) -> frozenset[int]:
    """Return the readers that get no more splits, without those that own a hidden split.

    A reader that adopts an epoch without its last split would end its query and never read it.
    """
    if visible is state.owners or not state.no_more_splits:
        return state.no_more_splits
    return state.no_more_splits.difference(
        owner for split_id, owner in state.owners.items() if split_id not in visible
    )


def visible_owners(state: CoordinatorState[SplitT]) -> Mapping[SplitId, int]:
    """Return the owners without splits that another host must release first: those are pending."""
    # Mostly nothing is on its way, and 100,000 owners need not be copied.
    if not state.revoking:
        return state.owners
    return {
        split_id: owner
        for split_id, owner in state.owners.items()
        if (revocation := state.revoking.get(split_id)) is None
        # Its holder may read on when it gets the split back: no one else has it.
        or revocation.host == state.host_of(owner)
    }
