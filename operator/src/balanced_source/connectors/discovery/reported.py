"""What readers report at their registration beyond what they own.

Positions that the enumerator continues from.
"""

from collections.abc import Collection, Container, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic

from balanced_source.api import ReaderInfo, SplitEnumeratorContext, SplitId, is_other
from balanced_source.connectors.discovery.contract import SplitDiscovery
from balanced_source.connectors.discovery.values import (
    DiscoveryState,
    Retained,
    SplitT,
    is_read,
    some,
)
from balanced_source.names import counted
from balanced_source.reasons import Reason


@dataclass(slots=True, kw_only=True)
class _Sorted(Generic[SplitT]):
    """What becomes of the reported splits; the tables start as copies of the enumerator's."""

    source: SplitDiscovery[SplitT]
    owned: Container[SplitId]
    until: float
    unassigned: dict[SplitId, SplitT]
    preferred: dict[SplitId, int]
    retained: dict[SplitId, Retained[SplitT]]
    unwanted: list[SplitId] = field(default_factory=list)
    claimed: set[SplitId] = field(default_factory=set)

    def take(self, split: SplitT, reader: ReaderInfo[SplitT], *, is_read: bool) -> None:
        """Take in one reported split, which the reader reads or only retains."""
        split_id = split.split_id
        waiting, kept = self.unassigned.get(split_id), self.retained.get(split_id)
        known = waiting or (kept.split if kept is not None else None)
        if split_id in self.owned or (
            known is not None and is_other(split.attributes(), known.attributes())
        ):
            # decided already, or a former split of this id, which says nothing of the present one
            return
        if not self.source.subscribes(split_id):
            self._keep(split)
        elif kept is not None and not is_read:
            self.retained[split_id] = replace(kept, split=_further(kept.split, split))
        else:
            self._wait(split, reader.subtask_id, known, is_read=is_read)
            if is_read and reader.is_first_report and split_id not in self.claimed:
                # The state is lost or an older copy, so its owner of the split may be outdated. The
                # reader that reads the split now keeps it. `_wait` has chosen the position.
                self.claimed.add(split_id)
                self.preferred[split_id] = reader.subtask_id

    def _wait(self, split: SplitT, subtask_id: int, known: SplitT | None, *, is_read: bool) -> None:
        # Who reads it has the word; who had it before someone else did can only move it forward,
        # and does not get it back for that: a host that retains a split cannot tell which of its
        # readers had it.
        split_id = split.split_id
        has_the_word = is_read and self.preferred.setdefault(split_id, subtask_id) == subtask_id
        self.unassigned[split_id] = (
            split if has_the_word or known is None else _further(known, split)
        )
        self.retained.pop(split_id, None)

    def _keep(self, split: SplitT) -> None:
        """The user does not want it now.

        Its position stays for a return, also if no one but the reader knew it.
        """
        split_id = split.split_id
        if self.source.retention > 0:
            # A deadline that runs continues: a report must not prolong it.
            entry = self.retained.get(split_id, Retained(split=split, until=self.until))
            self.retained[split_id] = replace(entry, split=_further(entry.split, split))
        else:
            self.unwanted.append(split_id)


def take_reported(
    state: DiscoveryState[SplitT],
    readers: Sequence[ReaderInfo[SplitT]],
    owned: Container[SplitId],
    source: SplitDiscovery[SplitT],
    *,
    until: float,
) -> tuple[DiscoveryState[SplitT], list[SplitId]]:
    """Splits that readers reported but do not own return to them once discovery confirms them.

    Nothing that was reported before is erased: a reader that registers again with an empty report
    has lost its Spark checkpoint, and the positions known here are all that is left.

    Args:
        state: of the enumerator.
        readers: all that register now. What one of them reads counts before what others retain from
            former times.
        owned: splits that have an owner.
        source: what the user wants.
        until: how long positions are kept of splits that the user does not want now.

    Returns:
        The state, and the splits whose positions no one needs any more.
    """
    taken = _Sorted(
        source=source,
        owned=owned,
        until=until,
        unassigned=dict(state.unassigned),
        preferred=dict(state.preferred),
        retained=dict(state.retained),
    )
    # What readers read comes first, because it has the word about where a split stands.
    for reader in readers:
        for split in reader.reported_splits:
            taken.take(split, reader, is_read=True)
    for reader in readers:
        for split in reader.retained_splits:
            taken.take(split, reader, is_read=False)
    after = replace(
        state,
        unassigned=taken.unassigned,
        preferred=taken.preferred,
        retained=taken.retained,
        discovered=state.discovered | _seen(readers, source, taken.retained),
    )
    return after, taken.unwanted


def reopened(
    state: DiscoveryState[SplitT],
    readers: Sequence[ReaderInfo[SplitT]],
    context: SplitEnumeratorContext[SplitT],
) -> DiscoveryState[SplitT]:
    """Return the state without ends that readers disprove.

    A Spark checkpoint that is an older copy holds splits before an end that was reached already.
    """
    owned = context.current_assignments()
    held = {s.split_id for reader in readers for s in reader.reported_splits}
    # Not what they report counts, but what was made of it: it may be of a former split by that id.
    now = {
        s: context.assigned_split(s) if s in owned else state.unassigned.get(s)
        for s in held & state.finished
    }
    again = {s for s, split in now.items() if split is not None and not is_read(split)}
    return replace(state, finished=state.finished - again) if again else state


def forget_unwanted(context: SplitEnumeratorContext[SplitT], split_ids: Sequence[SplitId]) -> None:
    """Forget the positions of reported splits that the user does not want now, and say so."""
    context.forget_splits(split_ids)
    if split_ids:
        text = (
            f"{counted(len(split_ids), 'split')} not subscribed any more after being read:"
            f" {some(sorted(split_ids))}. Positions are dropped: after another subscription,"
            " reading starts at the beginning"
        )
        context.report(Reason.SPLITS_DROPPED, text, warning=True)


def _seen(
    readers: Sequence[ReaderInfo[SplitT]],
    source: SplitDiscovery[SplitT],
    retained: Iterable[SplitId],
) -> frozenset[str]:
    """Returns the scopes of which the readers prove that their first discovery is complete.

    A reader whose past the state knows proves nothing about the source's present scopes: it may
    still hold splits of a scope that was removed without retention and put back, which begins like
    a new one.
    """
    first = scopes_held((r for r in readers if r.is_first_report), source).intersection(
        source.scopes()
    )
    return first | scopes_held(readers, source).intersection(source.scope_of(s) for s in retained)


def without_guesses(
    state: DiscoveryState[SplitT],
    readers: Collection[ReaderInfo[SplitT]],
    guessed: Container[SplitId],
    source: SplitDiscovery[SplitT],
) -> tuple[DiscoveryState[SplitT], frozenset[SplitId]]:
    """The state without what readers disprove, when the state knows nothing of their past.

    That is a former (or later) split under the id of a reported one, a position that was retained
    without them, and the start position of a split that no reader ever had, although readers have
    seen its scope. Either they report where to continue, or the split is newer than what they hold,
    and a discovery finds it again as new.

    Returns:
        The state, and the splits that were dropped from it without being reported.
    """
    reported = {s.split_id: s for r in readers for s in (*r.retained_splits, *r.reported_splits)}
    held = scopes_held(readers, source)

    def is_wrong(split: SplitT) -> bool:
        found = reported.get(split.split_id)
        return found is not None and is_other(found.attributes(), split.attributes())

    guesses = {
        s
        for s in state.unassigned
        # A split of a scope that hosts have seen, and that none of them holds, is newer than what
        # they hold: it begins at its beginning.
        if source.scope_of(s) in held and (s in guessed or s not in state.preferred)
    }
    gone = guesses | {s for s, split in state.unassigned.items() if is_wrong(split)}
    after = replace(
        state,
        unassigned={s: x for s, x in state.unassigned.items() if s not in gone},
        preferred={s: o for s, o in state.preferred.items() if s not in gone},
        # What the readers report of these counts, not what was retained without them.
        retained={s: entry for s, entry in state.retained.items() if s not in reported},
    )
    return after, frozenset(gone - reported.keys())


def scopes_held(
    readers: Iterable[ReaderInfo[SplitT]], source: SplitDiscovery[SplitT]
) -> frozenset[str]:
    """A reader that holds splits of a scope has seen its first discovery.

    What is found there now is new. So it is in the only scope of a source whose readers have
    adopted an assignment and hold nothing any more: all of its splits have left since.
    """
    known, scopes = tuple(readers), frozenset(source.scopes())
    held = frozenset(
        source.scope_of(s.split_id) for r in known for s in (*r.reported_splits, *r.retained_splits)
    )
    has_seen_one = not held and len(scopes) == 1 and any(r.has_adopted for r in known)
    return scopes if has_seen_one else held


def _further(one: SplitT, other: SplitT) -> SplitT:
    """The one that has been read further."""
    if one.position is None or other.position is None:
        return one if other.position is None else other
    return one if one.position >= other.position else other
