"""Tells of splits that cannot be read on.

They end before their position, may be of an older copy of their log, or do not exist.
"""

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

from balanced_source.api import Problem, ProblemKey, SplitId
from balanced_source.connectors.discovery import some
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.errors import DiscoveryError
from balanced_source.host.ends import Look
from balanced_source.names import counted
from balanced_source.reasons import Reason
from balanced_source_adapters.lazy_log import get_logger
from balanced_source_spark.contract.lost_splits import listed
from balanced_source_spark.ends import LASTS

log = get_logger(__name__)

_KEY: Final = ("splits", "short")
_UNCHECKED_KEY: Final = ("splits", "unchecked")

_SHORT: Final = (
    "{splits}: the source has less than was read. Records were cut off, or something shorter is in"
    " their place. Nothing is read there until there is more than was read, and what is written"
    " before that is never read. If something new is there, start the query with a new"
    " checkpointLocation"
)


_UNCHECKED: Final = (
    "{splits}: no leader can say whether the records that were read are still in the log. Servers"
    " may have been restored from an older copy. Nothing is read there, because records could be"
    " mixed or skipped. If servers were restored, delete and create each topic again, or start the"
    " query with a new checkpointLocation"
)

CHECK_LASTS: Final = 60.0
"""Seconds that the check of a log may take, with changes of its leader."""


class ShortSplits:
    """Those that have not been readable for a while. Used by the planning thread.

    Args:
        set_problem: sets or clears a problem of the query.
        lasts: seconds that a split may end before its position: an answer may be an old one.
        check_lasts: see `CHECK_LASTS`.
    """

    def __init__(
        self,
        set_problem: Callable[[ProblemKey, Problem | None], None],
        *,
        lasts: float = LASTS,
        check_lasts: float = CHECK_LASTS,
    ) -> None:
        self._set_problem = set_problem
        self._lasts = lasts
        self._check_lasts = check_lasts
        self._since: dict[SplitId, float] = {}
        self._unchecked_since: dict[SplitId, float] = {}

    def note(self, base: StreamOffset, seen: Look) -> None:
        """Take note of what the ends mean for the splits of `base`."""
        # Nearly always there is nothing to tell, and an idle query looks a hundred times a second.
        if not (seen.short or seen.unchecked or self._since or self._unchecked_since):
            return
        now = time.monotonic()
        self._since = {s: self._since.get(s, now) for s in seen.short}
        self._unchecked_since = {s: self._unchecked_since.get(s, now) for s in seen.unchecked}
        shrunk, unsure = None, None
        if lasting := _since_long(self._since, now - self._lasts):
            shrunk = Problem(reason=Reason.SPLIT_SHRUNK, message=_why(base, seen, lasting))
        if lasting := _since_long(self._unchecked_since, now - self._check_lasts):
            unsure = Problem(
                reason=Reason.SPLIT_SHRUNK, message=_why_unchecked(base, seen, lasting)
            )
        self._set_problem(_KEY, shrunk)
        self._set_problem(_UNCHECKED_KEY, unsure)


def _since_long(since: Mapping[SplitId, float], latest: float) -> list[SplitId]:
    return sorted(split_id for split_id, begun in since.items() if begun <= latest)


def tell_absent(split_ids: Collection[SplitId]) -> None:
    """Tell of splits that a query which ends by itself leaves out: they do not exist any more."""
    if split_ids:
        log.warning(
            "splits do not exist any more, so the query ends without them",
            splits=some(sorted(split_ids)),
            count=len(split_ids),
        )


def tell_short(end: StreamOffset) -> None:
    """Tell of splits that a batch query reads less of than its end options ask for."""
    if end.journal is not None:
        return  # it says where reading begins
    ranges = {
        s: f"ends at {position or 0}, and the query at {stop}"
        for s, position in sorted(end.positions.items())
        if (stop := end.stop_of(s)) is not None and stop > (position or 0)
    }
    if ranges:
        log.warning(
            "the source has less than the options for the end ask for: this batch query reads what"
            " there is, and nothing reads the rest",
            splits=listed(ranges),
        )


def unheard(
    base: StreamOffset, seen: Look, awaited: Collection[SplitId], timeout: float
) -> DiscoveryError:
    """Return why a query that ends by itself cannot continue without what it waits for."""
    if short := sorted(seen.short.keys() & set(awaited)):
        return DiscoveryError(_why(base, seen, short))
    return DiscoveryError(
        f"ends of {counted(len(awaited), 'split')}, such as {some(sorted(awaited)[:1])}, are"
        f" unknown after {timeout:.0f} s: check that the servers of the source answer and that"
        " nothing was deleted there, then start the query again"
    )


def without_times(split_ids: Collection[SplitId], timeout: float) -> DiscoveryError:
    """Return why a query that ends by itself and aligns its splits cannot continue."""
    return DiscoveryError(
        f"times of records are unknown after {timeout:.0f} s for"
        f" {counted(len(split_ids), 'split')}, such as {some(sorted(split_ids)[:1])}, so nothing"
        " can be aligned: check that the servers of the source answer, then start the query again"
    )


def _why(base: StreamOffset, seen: Look, split_ids: Iterable[SplitId]) -> str:
    ranges = {s: f"read up to {base.positions[s] or 0}, ends at {seen.short[s]}" for s in split_ids}
    return _SHORT.format(splits=listed(ranges))


def _why_unchecked(base: StreamOffset, seen: Look, split_ids: Iterable[SplitId]) -> str:
    splits = {
        s: f"read under leader epoch {base.terms.get(s)}, now {seen.unchecked[s]}"
        for s in split_ids
    }
    return _UNCHECKED.format(splits=listed(splits))
