"""Decides where a micro-batch ends. Pure: tests explore the same code that a driver runs."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from types import MappingProxyType

from balanced_source.api import SplitId
from balanced_source.documents.stream_offset import StreamOffset, TermEnd
from balanced_source.host.adoption import go_on
from balanced_source.host.table_columns import column


def reachable(
    base: StreamOffset,
    ends: Mapping[SplitId, int],
    *,
    targets: Mapping[SplitId, int] | None = None,
    silent: Collection[SplitId] = (),
) -> dict[SplitId, int]:
    """Returns how far each split can be read now, never less than its position.

    Args:
        base: offset from which the micro-batch continues.
        ends: end of each split as last known; a split without one is not read.
        targets: where a query that ends by itself stops; None: it does not end by itself.
        silent: splits whose leader or cluster does not answer. They are not read, because every
            other split would wait for them, except by a query that ends by itself.
    """
    held = {s: p or 0 for s, p in base.positions.items()}
    # Never less than the position: an end may be an old answer, or that of an open transaction.
    # A query that ends by itself must read up to its targets, so it waits for silent leaders.
    if targets is not None:
        return {s: max(p, min(targets.get(s, 0), ends.get(s, 0))) for s, p in held.items()}
    # Comparisons instead of `max`: with 10,000 splits the calls would take a tenth of all planning.
    found = {s: end if (end := ends.get(s, 0)) > p else p for s, p in held.items()}
    return found | {s: held[s] for s in silent if s in held} if silent else found


def within_stops(targets: Mapping[SplitId, int], base: StreamOffset) -> dict[SplitId, int]:
    """Returns where a query that ends by itself stops, at most where each split ends for good."""
    return {
        s: to if (stop := base.stop_of(s)) is None else min(to, stop) for s, to in targets.items()
    }


def can_grow(base: StreamOffset, reachable: Mapping[SplitId, int]) -> bool:
    """Returns whether a split may get records beyond where it can be read now."""
    return any((stop := base.stop_of(s)) is None or end < stop for s, end in reachable.items())


def advance(
    base: StreamOffset,
    positions: Mapping[SplitId, int],
    *,
    terms: Mapping[SplitId, int] = MappingProxyType({}),
    term_ends: Mapping[SplitId, tuple[TermEnd, ...]] = MappingProxyType({}),
    cuts: Mapping[SplitId, int] = MappingProxyType({}),
    max_records_per_reader: int | None = None,
) -> StreamOffset:
    """Returns the end of a micro-batch that reads the splits of `base` up to `positions`.

    Args:
        base: offset from which the micro-batch continues.
        positions: how far each split is read.
        terms: leadership under which the ends were said, see `StreamOffset.terms`.
        term_ends: ends of former leaderships, of the splits whose logs were checked for that.
        cuts: splits whose log was cut before their position. They go back to the cut, and the next
            micro-batch reads the records that are there now.
        max_records_per_reader: see `StreamOffset`.
    """
    reached = {**positions, **cuts}
    kept = _terms(base, reached, terms)
    past = {
        **base.term_ends,
        **{s: e for s, e in term_ends.items() if _has_moved(base, reached, s)},
    }
    return replace(
        base,
        positions=reached,
        terms=kept,
        term_ends={s: ends for s, ends in past.items() if s in kept},
        max_records_per_reader=max_records_per_reader,
    )


def _terms(
    base: StreamOffset, reached: Mapping[SplitId, int], terms: Mapping[SplitId, int]
) -> dict[SplitId, int]:
    """The leadership under which each split was read up to its position; of retained ones, too."""
    split_ids = list(reached)
    former, begins = column(base.terms, split_ids), column(base.positions, split_ids)
    rows = zip(split_ids, reached.values(), begins, former, column(terms, split_ids), strict=True)
    # The leadership belongs to the position. Where nothing was read, the former one still holds.
    kept = {
        s: term
        for s, to, begin, before, now in rows
        if (term := now if to != (begin or 0) else before) is not None
    }
    if base.retained:
        kept |= {s: base.terms[s] for s in base.retained if s in base.terms}
    return kept


def _has_moved(base: StreamOffset, reached: Mapping[SplitId, int], split_id: SplitId) -> bool:
    return split_id in reached and reached[split_id] != (base.positions[split_id] or 0)


def is_new(begin: StreamOffset, end: StreamOffset) -> bool:
    """Returns whether a micro-batch from `begin` to `end` reads records or adopts an epoch."""
    return end.epoch != begin.epoch or end.positions != begin.positions


def close(begin: StreamOffset) -> StreamOffset:
    """Returns the end of an empty micro-batch that says that everything has been read.

    It reads nothing: its starts belong to the micro-batch before it. It differs from `begin` also
    when that was a closing one, so that a query that starts again after its end can say so again,
    and ends again.
    """
    return replace(go_on(begin), closings=begin.closings + 1)
