"""The newest epochs of a source: when, what moved, and why. Bounded, whatever moves. Pure."""

import heapq
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from balanced_source.api import SplitId
from balanced_source.documents.assignment import Assignment
from balanced_source.names import capitalised, counted, split_name
from balanced_source_operator.views.model import OwnerChange, changes, first_moves

ENTRIES: Final = 50
"""Epochs that are kept of a source."""

SHOWN: Final = 20
"""Moves that an entry names; the others are counted."""

_PLACES: Final = 3
"""Topics, or other places, that a reason names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A published epoch.

    Attributes:
        epoch: its number.
        lineage: grows when the enumerator's state was rebuilt.
        at: seconds since the epoch when it was seen.
        readers: number of readers.
        splits: number of splits with a reader.
        moved: splits that changed their reader.
        added: splits that had no reader before.
        removed: splits that have none any more.
        moves: the first of these.
        why: a sentence.
        adopted_at: when all hosts were seen to have adopted it; None until then.
    """

    epoch: int
    lineage: int
    at: float
    readers: int
    splits: int
    moved: int = 0
    added: int = 0
    removed: int = 0
    moves: tuple[OwnerChange, ...] = ()
    why: str = ""
    adopted_at: float | None = None


class Timeline:
    """Mutable; of one source."""

    def __init__(self) -> None:
        self._entries: deque[Entry] = deque(maxlen=ENTRIES)
        self._last: Assignment | None = None

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The entries, newest first."""
        return tuple(reversed(self._entries))

    def take(self, assignment: Assignment | None, acknowledged: int | None, at: float) -> bool:
        """Take over what is published and the epoch that all hosts have adopted.

        Return whether that is news.
        """
        is_new = (
            assignment is not None and assignment.epoch > 0 and not _is_same(self._last, assignment)
        )
        if assignment is not None and is_new:
            self._entries.append(_entry(self._last, assignment, at))
            self._last = assignment
        return self._note_adopted(acknowledged, at) or is_new

    def _note_adopted(self, acknowledged: int | None, at: float) -> bool:
        newest = self._entries[-1] if self._entries else None
        if (
            newest is None
            or acknowledged is None
            or newest.adopted_at is not None
            or acknowledged < newest.epoch
        ):
            return False
        self._entries[-1] = replace(newest, adopted_at=at)
        return True


def _is_same(known: Assignment | None, assignment: Assignment) -> bool:
    return known is not None and (known.lineage, known.epoch) == (
        assignment.lineage,
        assignment.epoch,
    )


def _entry(before: Assignment | None, now: Assignment, at: float) -> Entry:
    difference = _difference(before.owners, now.owners) if before is not None else _OwnerChanges()
    return Entry(
        epoch=now.epoch,
        lineage=now.lineage,
        at=at,
        readers=now.parallelism,
        splits=len(now.owners),
        moved=difference.moved,
        added=difference.added.total(),
        removed=difference.removed.total(),
        moves=difference.shown,
        why=_why(before, now, difference),
    )


@dataclass(slots=True, kw_only=True)
class _OwnerChanges:
    """What differs between two assignments, counted without keeping every move."""

    moved: int = 0
    added: Counter[SplitId] = field(default_factory=Counter)
    removed: Counter[SplitId] = field(default_factory=Counter)
    shown: tuple[OwnerChange, ...] = ()


def _difference(before: Mapping[SplitId, int], now: Mapping[SplitId, int]) -> _OwnerChanges:
    difference = _OwnerChanges(shown=first_moves(before, now, SHOWN))
    for move in changes(before, now):
        if move.before is None:
            difference.added[move.split[:-1]] += 1
        elif move.after is None:
            difference.removed[move.split[:-1]] += 1
        else:
            difference.moved += 1
    return difference


def _why(before: Assignment | None, now: Assignment, difference: _OwnerChanges) -> str:
    if before is None:
        return "In effect when the operator began to look; earlier epochs are not known"
    reasons = [*_reasons(before, now), *_split_reasons(difference)]
    if not reasons and difference.moved:
        reasons.append("rebalanced")
    if now.epoch > before.epoch + 1 and now.lineage == before.lineage:
        reasons.append(f"epochs {before.epoch + 1} to {now.epoch} in one step")
    text = "; ".join(reasons) or "no split moved: settings or start positions changed"
    return capitalised(text)


def _reasons(before: Assignment, now: Assignment) -> list[str]:
    reasons = []
    if now.lineage != before.lineage:
        reasons.append("the enumerator's state was rebuilt")
    if now.parallelism != before.parallelism:
        reasons.append(
            f"rescaled from {before.parallelism} to {counted(now.parallelism, 'reader')}"
        )
    if _members(now) != _members(before):
        reasons.append("hosts joined or left")
    elif now.incarnations != before.incarnations:
        reasons.append("a driver started or restarted")
    return reasons


def _members(assignment: Assignment) -> frozenset[str]:
    return frozenset(assignment.incarnations) - assignment.idle_hosts


def _split_reasons(difference: _OwnerChanges) -> list[str]:
    return [
        f"{counted(found.total(), 'split')} {verb}{_places(found)}"
        for found, verb in (
            (difference.added, "added"),
            (difference.removed, "removed, finished or revoked"),
        )
        if found
    ]


def _places(found: Counter[SplitId]) -> str:
    """Return where splits are, such as the topics of partitions."""
    largest = heapq.nsmallest(
        _PLACES, found, key=lambda prefix: (-found[prefix], split_name(prefix))
    )
    names = [split_name(prefix) for prefix in largest if prefix]
    more = f" and {len(found) - _PLACES} more" if len(found) > _PLACES else ""
    return f" in {', '.join(names)}{more}" if names else ""
