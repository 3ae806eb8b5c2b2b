"""Relates what a server says of the ends of splits to the splits that a query holds. Pure."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final

from balanced_source.api import IDENTITY, STOP, Json, SplitId
from balanced_source.documents.stream_offset import StreamOffset, TermEnd

_NO_ATTRIBUTES: Final[Mapping[str, Json]] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """States up to where a query has read a split, and in which state of the split's log.

    Attributes:
        position: first position that is not read.
        term: see `StreamOffset.terms`; None: unknown.
        identity: of the split that was read; None: unknown.
        past: see `StreamOffset.term_ends`.
        stop: first position that the query never reads; None: there is none.
    """

    position: int
    term: int | None = None
    identity: str | None = None
    past: tuple[TermEnd, ...] = ()
    stop: int | None = None

    @property
    def is_finished(self) -> bool:
        """Whether everything of the split is read."""
        return self.stop is not None and self.position >= self.stop


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
        first: first position that can still be read; None: the server was not asked, or nothing
            between the mark and the end was deleted.
    """

    end: int
    identity: str | None = None
    term: int | None = None
    checked: Mark | None = None
    cut: int | None = None
    past: tuple[TermEnd, ...] = ()
    first: int | None = None


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
        short: splits that end before their position, and whose logs were not checked → their end.
            They are not read until the end has passed the position, or a check says more.
        unchecked: splits whose leader names another leadership than they were read under, and whose
            logs were not checked → that leadership. They are not read until a check says more.
        firsts: splits whose next records were deleted → first position that can still be read, at
            most the end. What is before it is no lag, and counts for no limit.
    """

    ends: Mapping[SplitId, int] = field(default_factory=dict)
    terms: Mapping[SplitId, int] = field(default_factory=dict)
    term_ends: Mapping[SplitId, tuple[TermEnd, ...]] = field(default_factory=dict)
    recreated: frozenset[SplitId] = frozenset()
    cuts: Mapping[SplitId, int] = field(default_factory=dict)
    deleted: Mapping[SplitId, int] = field(default_factory=dict)
    short: Mapping[SplitId, int] = field(default_factory=dict)
    unchecked: Mapping[SplitId, int] = field(default_factory=dict)
    firsts: Mapping[SplitId, int] = field(default_factory=dict)

    def behind_deleted(
        self, held: Mapping[SplitId, int], free: Mapping[SplitId, int]
    ) -> Mapping[SplitId, int]:
        """Returns where reading can continue at the earliest.

        Args:
            held: where each split stands.
            free: how far it may be read: a silent split stays where it is, and a query that ends by
                itself does not pass what it found at its start.
        """
        if not self.firsts:
            return held
        later = {s: max(held[s], min(to, free[s])) for s, to in self.firsts.items()}
        return {**held, **later}

    def unknown(self, base: StreamOffset) -> frozenset[SplitId]:
        """Returns the splits of `base` of which nothing is known now."""
        return (
            frozenset(base.positions)
            - self.ends.keys()
            - self.recreated
            - self.cuts.keys()
            - self.deleted.keys()
        )

    def awaited(
        self,
        base: StreamOffset,
        targets: Mapping[SplitId, int],
        *,
        heard: Collection[SplitId],
        mute: Collection[SplitId],
    ) -> frozenset[SplitId]:
        """Returns the splits of `base` that a query which ends by itself has to hear of first.

        A split that its server has left out does not exist. If it was read up to its target, or has
        none, there is nothing to wait for: it would hold up all others at each start.

        Args:
            base: offset from which the micro-batch continues.
            targets: where the query stops reading each split that it found at its start.
            heard: splits with an answer, also with one that has to be checked.
            mute: splits whose servers do not answer.
        """
        return frozenset(
            s
            for s in self.unknown(base)
            if s in heard or s in mute or (base.positions[s] or 0) < targets.get(s, 0)
        )


def marks(base: StreamOffset) -> dict[SplitId, Mark]:
    """Returns where each split of `base` is read up to."""
    return {s: mark_of(base, s) for s in base.positions}


def mark_of(base: StreamOffset, split_id: SplitId) -> Mark:
    """Returns where one split of `base` is read up to."""
    known = base.attributes.get(split_id, {})
    return Mark(
        position=base.positions[split_id] or 0,
        term=base.terms.get(split_id),
        identity=known.get(IDENTITY),
        past=base.term_ends.get(split_id, ()),
        stop=known.get(STOP),
    )


class Marks(Mapping[SplitId, Mark]):
    """Where splits of `base` are read up to; each mark is made when it is asked for.

    Args:
        base: offset in use.
        split_ids: the splits; one that `base` lacks has no mark.
    """

    def __init__(self, base: StreamOffset, split_ids: Collection[SplitId]) -> None:
        self._base = base
        self._split_ids = split_ids

    def __getitem__(self, split_id: SplitId) -> Mark:
        return mark_of(self._base, split_id)

    def __iter__(self) -> Iterator[SplitId]:
        return (s for s in self._split_ids if s in self._base.positions)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, split_id: object) -> bool:
        return split_id in self._base.positions

    def suspects(self, answers: Mapping[SplitId, SplitEnd]) -> Iterator[SplitId]:
        """Returns the splits whose answers may need a check: mostly none, found without marks."""
        positions, terms = self._base.positions, self._base.terms
        for split_id, answer in answers.items():
            if split_id in positions and _is_suspect(
                positions[split_id] or 0, terms.get(split_id), answer
            ):
                yield split_id

    def are_continued(self, answers: Mapping[SplitId, SplitEnd]) -> bool:
        """See `are_continued`."""
        positions, terms = self._base.positions, self._base.terms
        attributes = self._base.attributes
        return all(
            s in positions
            and attributes.get(s, _NO_ATTRIBUTES).get(IDENTITY) == answer.identity
            and not _is_suspect(positions[s] or 0, terms.get(s), answer)
            for s, answer in answers.items()
        )

    def at_end(self, answers: Mapping[SplitId, SplitEnd]) -> list[SplitId]:
        """See `at_end`."""
        known = self._base.positions
        return [s for s, a in answers.items() if s in known and (known[s] or 0) == a.end]


def are_continued(marks: Mapping[SplitId, Mark], answers: Mapping[SplitId, SplitEnd]) -> bool:
    """Returns whether each answer may follow its mark.

    It names the split of the mark, under the same leadership, and an end that is not before it.
    """
    if isinstance(marks, Marks):
        return marks.are_continued(answers)
    return all(
        (mark := marks.get(s)) is not None
        and mark.identity == answer.identity
        and not _is_suspect(mark.position, mark.term, answer)
        for s, answer in answers.items()
    )


def at_end(marks: Mapping[SplitId, Mark], answers: Mapping[SplitId, SplitEnd]) -> list[SplitId]:
    """Returns the splits that are read up to the end that their answer names."""
    if isinstance(marks, Marks):
        return marks.at_end(answers)
    return [s for s, a in answers.items() if s in marks and marks[s].position == a.end]


def doubtful(
    marks: Mapping[SplitId, Mark], answers: Mapping[SplitId, SplitEnd]
) -> dict[SplitId, Mark]:
    """Returns the marks before which the logs may have been cut, see `needs_check`."""
    found = (
        marks.suspects(answers)
        if isinstance(marks, Marks)
        else (split_id for split_id in answers if split_id in marks)
    )
    return {s: mark for s in found if needs_check(mark := marks[s], answers[s])}


def needs_check(mark: Mark, answer: SplitEnd) -> bool:
    """Returns whether a log may have been cut before `mark`.

    It ends before it, or has had other leaders since.
    """
    if None not in (mark.identity, answer.identity) and mark.identity != answer.identity:
        return False  # another log
    return _is_suspect(mark.position, mark.term, answer)


def _is_suspect(position: int, term: int | None, answer: SplitEnd) -> bool:
    # An end before the mark may also be that of an open transaction. Only the check can tell. A
    # later leader may have cut the log, and filled it beyond the mark again.
    return answer.end < position or (term is not None and answer.term not in (None, term))


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
    found = _LookSoFar()
    stops = {
        s: int(base.attributes.get(s, {}).get(STOP, 0)) for s in deleted if s in base.positions
    }
    lost = {s: stop for s, stop in stops.items() if stop > (base.positions[s] or 0)}
    terms, attributes = base.terms, base.attributes
    for split_id, position in base.positions.items():
        answer = known.get(split_id)
        if answer is None or split_id in lost:
            continue
        of_split = attributes.get(split_id, _NO_ATTRIBUTES)
        # Nearly all answers: nothing was checked, and nothing has to be. Written out, because this
        # is done for each split of each micro-batch.
        if (
            answer.checked is None
            and answer.cut is None
            and answer.first is None
            and answer.end >= (position or 0)
            and answer.term is not None
            and terms.get(split_id, answer.term) == answer.term
            and answer.identity == of_split.get(IDENTITY)
            and STOP not in of_split
        ):
            found.ends[split_id] = answer.end
            found.terms[split_id] = answer.term
        else:
            found.take(base, split_id, position or 0, answer)
    return Look(
        ends=found.ends,
        terms=found.terms,
        term_ends=found.pasts,
        recreated=frozenset(found.recreated),
        cuts=found.cuts,
        deleted=lost,
        short=found.short,
        unchecked=found.unchecked,
        firsts=found.firsts,
    )


def unread_rests(
    base: StreamOffset, known: Mapping[SplitId, SplitEnd], deleted: Collection[SplitId]
) -> dict[SplitId, int]:
    """Returns where deleted splits ended that had unread records and no stop, as far as is known.

    Args:
        base: offset up to which they were read.
        known: last answers about them.
        deleted: splits of `base` that do not exist any more.
    """
    found: dict[SplitId, int] = {}
    for split_id in deleted:
        answer, attributes = known.get(split_id), base.attributes.get(split_id, _NO_ATTRIBUTES)
        # An answer of another split by that id says nothing of the one that was read.
        if answer is None or STOP in attributes or answer.identity != attributes.get(IDENTITY):
            continue
        if answer.end > (base.positions[split_id] or 0):
            found[split_id] = answer.end
    return found


class _LookSoFar:
    """What a look has found so far."""

    def __init__(self) -> None:
        self.ends: dict[SplitId, int] = {}
        self.terms: dict[SplitId, int] = {}
        self.cuts: dict[SplitId, int] = {}
        self.pasts: dict[SplitId, tuple[TermEnd, ...]] = {}
        self.recreated: set[SplitId] = set()
        self.short: dict[SplitId, int] = {}
        self.unchecked: dict[SplitId, int] = {}
        self.firsts: dict[SplitId, int] = {}

    def take(self, base: StreamOffset, split_id: SplitId, position: int, answer: SplitEnd) -> None:
        attributes, term = base.attributes.get(split_id, _NO_ATTRIBUTES), answer.term
        identity = attributes.get(IDENTITY)
        # Offsets of a former split must never be used on the one that has its id now.
        if identity is not None and answer.identity is not None and identity != answer.identity:
            self.recreated.add(split_id)
            return
        # Mostly nothing was checked and nothing has to be: then no mark is made to compare with.
        is_checked = answer.checked is not None and answer.checked == mark_of(base, split_id)
        # Reading on unchecked could mix records of two logs, so the split waits for the check.
        if not is_checked and _is_suspect(position, base.terms.get(split_id), answer):
            if answer.end < position:
                self.short[split_id] = answer.end
            elif term is not None:
                self.unchecked[split_id] = term
            return
        # Other records have the offsets behind the cut, so positions behind it mean nothing.
        if answer.cut is not None and answer.cut < position:
            self.cuts[split_id] = answer.cut
        else:
            # The stop is that of the offset in use: the newest assignment may be another epoch.
            stop = attributes.get(STOP)
            end = answer.end if stop is None else min(answer.end, int(stop))
            self.ends[split_id] = end
            if answer.first is not None and position < answer.first:
                self.firsts[split_id] = min(answer.first, end)
        if term is not None:
            self.terms[split_id] = term
            # What was learned about another mark does not cover the records up to this one.
            if is_checked:
                self.pasts[split_id] = answer.past


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


def confirmed(
    base: StreamOffset,
    known: Mapping[SplitId, SplitEnd],
    before: Mapping[SplitId, Confirmed] = MappingProxyType({}),
) -> dict[SplitId, Confirmed]:
    """Returns marks of `base` whose logs were found whole, with the leadership they were under.

    Args:
        base: offset in use.
        known: answers, some of which may be old.
        before: what was confirmed earlier, which stays for the splits of `base`.
    """
    kept = {s: found for s, found in before.items() if s in base.positions}
    return kept | {
        split_id: Confirmed(mark=answer.checked, term=answer.term, past=answer.past)
        for split_id, answer in known.items()
        # Few answers were checked, so few marks are made to compare with.
        if answer.checked is not None
        and answer.cut is None
        and answer.term is not None
        and split_id in base.positions
        and answer.checked == mark_of(base, split_id)
    }


def with_confirmed(base: StreamOffset, found: Mapping[SplitId, Confirmed]) -> StreamOffset:
    """Returns `base` in the leaderships that confirmed its marks, so that none is checked twice."""
    # A split that moved since has another mark, of which nothing was confirmed.
    newer = {
        s: confirmed
        for s, confirmed in found.items()
        if s in base.positions and confirmed.mark == mark_of(base, s)
    }
    if not newer:
        return base
    return replace(
        base,
        terms={**base.terms, **{s: found.term for s, found in newer.items()}},
        term_ends={**base.term_ends, **{s: found.past for s, found in newer.items() if found.past}},
    )
