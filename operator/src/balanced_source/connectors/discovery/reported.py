"""What a reader reports at its registration beyond what it owns: positions that the enumerator goes on from."""

from collections.abc import Container
from dataclasses import replace

from balanced_source.api import ReaderInfo, SplitId, is_other
from balanced_source.connectors.discovery.source import DiscoveringSource
from balanced_source.connectors.discovery.values import DiscoveryState, SplitT


def take_reported(
    state: DiscoveryState[SplitT],
    reader: ReaderInfo[SplitT],
    owned: Container[SplitId],
    source: DiscoveringSource[SplitT],
) -> tuple[DiscoveryState[SplitT], list[SplitId]]:
    """What a reader reported beyond what it owns goes back to it, once a discovery tells that it still exists.

    Nothing that was reported before is erased: a reader that registers again with an empty report has lost its
    Spark checkpoint, and the positions known here are all that is left.

    Returns:
        The state, and those of the splits that the user does not want any more.
    """
    unassigned, preferred = dict(state.unassigned), dict(state.preferred)
    retained, unwanted = dict(state.retained), []
    reads = {split.split_id for split in reader.reported_splits}
    for split in (*reader.retained_splits, *reader.reported_splits):
        split_id = split.split_id
        if split_id in unassigned and is_other(split.attributes(), unassigned[split_id].attributes()):
            continue  # a former split of this id: it says nothing of the present one
        if split_id in retained:
            retained[split_id] = replace(retained[split_id], split=_further(retained[split_id].split, split))
        elif split_id not in owned and source.subscribes(split_id):
            # Who reads it has the word; who had it before somebody else did can only move it forward.
            last = preferred.setdefault(split_id, reader.subtask_id)
            has_the_word = split_id in reads and last == reader.subtask_id
            unassigned[split_id] = split if has_the_word else _further(unassigned.get(split_id, split), split)
        elif split_id not in owned:
            unwanted.append(split_id)
    discovered = state.discovered | _seen_before(reader, source)
    taken = replace(state, unassigned=unassigned, preferred=preferred, retained=retained, discovered=discovered)
    return taken, unwanted


def _seen_before(reader: ReaderInfo[SplitT], source: DiscoveringSource[SplitT]) -> frozenset[str]:
    """Whoever holds splits of a scope has seen its first discovery: what is found there now is new."""
    held = (*reader.reported_splits, *reader.retained_splits)
    return frozenset(source.scope_of(split.split_id) for split in held).intersection(source.scopes())


def _further(one: SplitT, other: SplitT) -> SplitT:
    """The one that has been read further."""
    if one.position is None or other.position is None:
        return one if other.position is None else other
    return one if one.position >= other.position else other
