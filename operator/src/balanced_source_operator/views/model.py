"""A source as commands show it. None always means unknown."""

import heapq
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from balanced_source.api import SplitId


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionView:
    """A condition of the source."""

    type: str
    status: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Adopted:
    """What the application's newest report says.

    Attributes:
        epoch: the epoch it has adopted.
        parallelism: number of readers in that epoch.
        owners: split → reader.
        positions: split → committed position, where it is a number.
        heartbeat: when the report was written, in seconds since the epoch.
    """

    epoch: int
    parallelism: int
    owners: Mapping[SplitId, int] = field(default_factory=dict)
    positions: Mapping[SplitId, int] = field(default_factory=dict)
    heartbeat: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HostView:
    """One of several hosts of a source."""

    name: str
    role: str
    application: str
    state: str
    readers: int
    splits: int
    lag: int | None
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceView:
    """One source.

    Attributes:
        namespace: empty in local mode.
        name: of the BalancedSource.
        desired: spec.parallelism; None if the spec is invalid.
        epoch: newest published epoch.
        parallelism: number of readers in that epoch.
        owners: split → reader, as published.
        pending: number of splits without a reader.
        lag: records not read yet.
        behind: seconds by which the slowest split is behind, for sources that do not count records.
        application: state of the Spark application.
        conditions: in the order of the status.
        adopted: what the application has adopted.
        hosts: of a source that has several.
        problems: what is wrong with a source of local mode, by what it is about.
        notes: what could not be read.
    """

    namespace: str
    name: str
    desired: int | None = None
    epoch: int = 0
    parallelism: int = 0
    owners: Mapping[SplitId, int] = field(default_factory=dict)
    pending: int | None = None
    lag: int | None = None
    behind: int | None = None
    application: str = ""
    conditions: tuple[ConditionView, ...] = ()
    adopted: Adopted | None = None
    hosts: tuple[HostView, ...] = ()
    problems: Mapping[tuple[str, ...], str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def sentences(self) -> tuple[str, ...]:
        """Problems and notes, each text once."""
        return tuple(dict.fromkeys((*self.problems.values(), *self.notes)))

    def condition(self, kind: str) -> ConditionView | None:
        """Return a condition by its type."""
        return next((found for found in self.conditions if found.type == kind), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerChange:
    """A split that changes its reader; None before: it is new, None after: it is no longer read."""

    split: SplitId
    before: int | None
    after: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderRow:
    """One reader.

    Attributes:
        reader: its number.
        splits: the splits it owns.
        rate: records per second that it committed since the view before.
    """

    reader: int
    splits: tuple[SplitId, ...]
    rate: float | None = None


def moves_under_way(view: SourceView) -> tuple[OwnerChange, ...]:
    """Return the splits whose published owner the application has not adopted yet."""
    if view.adopted is None or view.adopted.epoch >= view.epoch:
        return ()
    return _moves(view.adopted.owners, view.owners)


def moves_between(before: SourceView, after: SourceView) -> tuple[OwnerChange, ...]:
    """Return the splits whose published owner differs between two views."""
    return _moves(before.owners, after.owners)


def _moves(before: Mapping[SplitId, int], after: Mapping[SplitId, int]) -> tuple[OwnerChange, ...]:
    return tuple(sorted(changes(before, after), key=lambda move: _order(move.split)))


def changes(before: Mapping[SplitId, int], after: Mapping[SplitId, int]) -> Iterator[OwnerChange]:
    """Yield the splits whose owner differs, in no order."""
    for split in before.keys() | after.keys():
        if before.get(split) != after.get(split):
            yield OwnerChange(split=split, before=before.get(split), after=after.get(split))


def first_moves(
    before: Mapping[SplitId, int], after: Mapping[SplitId, int], count: int
) -> tuple[OwnerChange, ...]:
    """Return the first changes in the order of the splits, without keeping all of them."""
    return tuple(
        heapq.nsmallest(count, changes(before, after), key=lambda move: _order(move.split))
    )


def readers(view: SourceView, before: SourceView | None = None) -> tuple[ReaderRow, ...]:
    """Return a row per reader; rates need an earlier view."""
    rates = split_rates(view, before)
    rows = []
    for reader in range(view.parallelism):
        splits = sorted(
            (split for split, owner in view.owners.items() if owner == reader), key=_order
        )
        measured = [rates[split] for split in splits if split in rates]
        rate = sum(measured) if len(measured) == len(splits) and rates else None
        rows.append(ReaderRow(reader=reader, splits=tuple(splits), rate=rate))
    return tuple(rows)


def split_rates(view: SourceView, before: SourceView | None) -> dict[SplitId, float]:
    """Return split → positions per second committed since an earlier view.

    Splits of unknown rate are missing.
    """
    then, now = before.adopted if before is not None else None, view.adopted
    if then is None or now is None or now.heartbeat <= then.heartbeat:
        return {}
    seconds = now.heartbeat - then.heartbeat
    known = ((split, now.positions[split], then.positions.get(split)) for split in now.positions)
    return {
        split: (new - old) / seconds for split, new, old in known if old is not None and new >= old
    }


def in_order(splits: Iterable[SplitId]) -> list[SplitId]:
    """Return splits sorted for people: numbers as numbers, and before text."""
    return sorted(splits, key=_order)


def _order(split: SplitId) -> tuple[tuple[bool, str | int], ...]:
    """Numbers sort as numbers, and before text."""
    return tuple((isinstance(part, str), part) for part in split)
