"""Relates what a server says of the ends of splits to the splits that a query holds. Pure."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from balanced_source.api import IDENTITY, STOP, SplitId, is_other
from balanced_source.documents.stream_offset import StreamOffset, TermEnd


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """States up to where a query has read a split, and in which state of the split's log.

    Attributes:
        position: first position that is not read.
        term: see `StreamOffset.terms`; None: unknown.
        identity: of the split that was read; None: unknown.
        past: see `StreamOffset.term_ends`.
    """

    position: int
    term: int | None = None
    identity: str | None = None
    past: tuple[TermEnd, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitEnd:
    """States what a server says of the split that has an id now.

    Attributes:
        end: first position that cannot be read yet.
        identity: what tells the split from a former one with the same id; None: the server does not
            say.
        term: number of the leadership that says so; None: the server does not say.
        checked: the mark whose records the log still has, or had up to `cut`; None: nothing was
            checked.
        cut: where the log was cut, if that is before the position of the checked mark.
        past: what the check has learned, see `StreamOffset.term_ends`.
    """

    end: int
    identity: str | None = None
    term: int | None = None
    checked: Mark | None = None
    cut: int | None = None
    past: tuple[TermEnd, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """States what the ends mean for the splits of one stream offset.

    Attributes:
        ends: how far each split can be read, at most to its stop; without splits of which that is
            unknown.
        terms: leadership that says so, for the splits of which it is known.
        term_ends: ends of former leaderships, for the splits whose logs were checked.
        recreated: splits that were deleted, and whose ids other splits have now. Nothing of them
            can be read any more.
        cuts: splits whose log was cut before their position → where. Other records have the offsets
            after it.
        deleted: splits that were deleted before they were read to their stop → the stop.
    """

    ends: Mapping[SplitId, int] = field(default_factory=dict)
    terms: Mapping[SplitId, int] = field(default_factory=dict)
    term_ends: Mapping[SplitId, tuple[TermEnd, ...]] = field(default_factory=dict)
    recreated: frozenset[SplitId] = frozenset()
    cuts: Mapping[SplitId, int] = field(default_factory=dict)
    deleted: Mapping[SplitId, int] = field(default_factory=dict)

    def unknown(self, base: StreamOffset) -> frozenset[SplitId]:
        """Returns the splits of `base` of which nothing is known now."""
        return (
            frozenset(base.positions)
            - self.ends.keys()
            - self.recreated
            - self.cuts.keys()
            - self.deleted.keys()
        )


def marks(base: StreamOffset) -> dict[SplitId, Mark]:
    """Returns where each split of `base` is read up to."""
    return {
        s: Mark(
            position=p or 0,
            term=base.terms.get(s),
            identity=base.attributes.get(s, {}).get(IDENTITY),
            past=base.term_ends.get(s, ()),
        )
        for s, p in base.positions.items()
    }


def needs_check(mark: Mark, answer: SplitEnd) -> bool:
    """Returns whether a log may have been cut before `mark`.

    It ends before it, or has had other leaders since.
    """
    if None not in (mark.identity, answer.identity) and mark.identity != answer.identity:
        return False  # another log
    # An end before the mark may also be that of an open transaction. Only the check can tell. A
    # later leader may have cut the log, and filled it beyond the mark again.
    return answer.end < mark.position or (
        mark.term is not None and answer.term not in (None, mark.term)
    )


def look(
    base: StreamOffset, known: Mapping[SplitId, SplitEnd], *, deleted: Collection[SplitId] = ()
) -> Look:
    """Returns what the ends mean for the splits of `base`.

    Identities and stops are those of the offset in use. The newest assignment may be another epoch:
    it waits while executors start, and gives other identities to the same ids. An answer that had
    to be checked and was not, or for another position, counts as no answer.

    Args:
        base: offset in use.
        known: answers, some of which may be old.
        deleted: splits that do not exist any more. A source without stops learns that from its next
            assignment.
    """
    ends: dict[SplitId, int] = {}
    terms: dict[SplitId, int] = {}
    cuts: dict[SplitId, int] = {}
    pasts: dict[SplitId, tuple[TermEnd, ...]] = {}
    stops = {
        s: int(base.attributes.get(s, {}).get(STOP, 0)) for s in deleted if s in base.positions
    }
    lost = {s: stop for s, stop in stops.items() if stop > (base.positions[s] or 0)}
    recreated = set()
    for split_id, mark in marks(base).items():
        answer = known.get(split_id)
        if answer is None or split_id in lost:
            continue
        attributes = base.attributes.get(split_id, {})
        # Offsets of a former split must never be used on the one that has its id now.
        if is_other(attributes, {} if answer.identity is None else {IDENTITY: answer.identity}):
            recreated.add(split_id)
        # Reading on unchecked could mix records of two logs, so the split waits for the check.
        elif needs_check(mark, answer) and answer.checked != mark:
            continue
        # Other records have the offsets behind the cut, so positions behind it mean nothing.
        elif answer.cut is not None and answer.cut < mark.position:
            cuts[split_id] = answer.cut
        else:
            # The stop is that of the offset in use: the newest assignment may be another epoch.
            ends[split_id] = min(answer.end, int(attributes.get(STOP, answer.end)))
        if answer.term is not None and split_id not in recreated:
            terms[split_id] = answer.term
            # What was learned about another mark does not cover the records up to this one.
            if answer.checked == mark:
                pasts[split_id] = answer.past
    return Look(
        ends=ends,
        terms=terms,
        term_ends=pasts,
        recreated=frozenset(recreated),
        cuts=cuts,
        deleted=lost,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmed:
    """States that the log of a split was found whole.

    Attributes:
        mark: up to where.
        term: number of the leadership under which that was found.
        past: what was learned of former ones.
    """

    mark: Mark
    term: int
    past: tuple[TermEnd, ...]


def confirmed(base: StreamOffset, known: Mapping[SplitId, SplitEnd]) -> dict[SplitId, Confirmed]:
    """Returns marks of `base` whose logs were found whole, with the leadership they were under."""
    return {
        split_id: Confirmed(mark=mark, term=answer.term, past=answer.past)
        for split_id, mark in marks(base).items()
        if (answer := known.get(split_id)) is not None
        and answer.checked == mark
        and answer.cut is None
        and answer.term is not None
    }


def with_confirmed(base: StreamOffset, found: Mapping[SplitId, Confirmed]) -> StreamOffset:
    """Returns `base` in the leaderships that confirmed its marks, so that none is checked twice."""
    # A split that moved since has another mark, of which nothing was confirmed.
    newer = {s: found[s] for s, mark in marks(base).items() if s in found and found[s].mark == mark}
    if not newer:
        return base
    return replace(
        base,
        terms={**base.terms, **{s: found.term for s, found in newer.items()}},
        term_ends={**base.term_ends, **{s: found.past for s, found in newer.items() if found.past}},
    )
