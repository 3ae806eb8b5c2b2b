"""Tells of splits whose records are gone, or cannot be read on, as the ends of splits show.

A connector that overrides `PlannerHooks.note_look` knows its splits better, and tells of those that
are gone itself. Splits that end before their position are told of here for every connector.
"""

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

from balanced_source.api import Problem, ProblemKey, SplitId
from balanced_source.connectors.discovery import some
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.errors import DiscoveryError
from balanced_source.host.ends import Look
from balanced_source.reasons import Reason
from balanced_source_adapters.lazy_log import get_logger
from balanced_source_spark.contract.hooks import PlannerHooks
from balanced_source_spark.ends import LASTS

log = get_logger(__name__)

_KEY: Final = "splits"
"""First part of the keys of these problems."""

_SHOWN: Final = 3
"""Splits that a message names."""

_STOPS: Final = (
    "The connector does not skip lost records. Restore the data, or start the query with a new"
    " checkpointLocation"
)

_SHORT: Final = (
    "{splits}: the source has less of them than was read. They were cut or replaced by shorter"
    " ones. Nothing of them is read until they have grown beyond what was read, and what is written"
    " before that is never read. If they are new ones, start the query with a new"
    " checkpointLocation"
)


class GoneSplits:
    """See the module. Used by the planning thread.

    Args:
        set_problem: sets or clears a problem of the query.
        check_problems: see `PlannerContext.check_problems`.
        hooks: of the connector.
        lasts: seconds that a split may end before its position: an answer may be an old one.
    """

    def __init__(
        self,
        set_problem: Callable[[ProblemKey, Problem | None], None],
        check_problems: Callable[[], None],
        hooks: PlannerHooks,
        *,
        lasts: float = LASTS,
    ) -> None:
        self._set_problem = set_problem
        self._check_problems = check_problems
        self._hooks = hooks
        self._lasts = lasts
        self._problems: dict[str, Problem] = {}
        self._short_since: dict[SplitId, float] = {}

    def note(self, base: StreamOffset, seen: Look) -> None:
        """Take note of what the ends mean for the splits of `base`.

        Raises:
            FatalProblemError: records are gone, the connector does not skip them, and no operator
                can report it.
        """
        # Nearly always there is nothing to tell, and an idle query looks a hundred times a second.
        if not (seen.short or seen.recreated or seen.cuts or seen.deleted or self._problems):
            self._short_since.clear()
            return
        self._tell("short", self._short(base, seen))
        if not self._hooks.tells_losses:
            self._tell("recreated", self._recreated(base, seen))
            self._tell("cut", self._cut(base, seen))
            self._tell("deleted", self._deleted(base, seen))
            self._check_problems()

    def note_absent(self, split_ids: Collection[SplitId]) -> None:
        """Take note of splits that a query which ends by itself leaves out: they do not exist."""
        if split_ids:
            log.warning(
                "splits do not exist any more, so the query ends without them",
                splits=some(sorted(split_ids)),
                count=len(split_ids),
            )

    def _tell(self, kind: str, problem: Problem | None) -> None:
        if problem == self._problems.get(kind):
            return
        if problem is None:
            del self._problems[kind]
        else:
            self._problems[kind] = problem
        self._set_problem((_KEY, kind), problem)

    def _short(self, base: StreamOffset, seen: Look) -> Problem | None:
        now = time.monotonic()
        self._short_since = {s: self._short_since.get(s, now) for s in seen.short}
        lasting = sorted(s for s, since in self._short_since.items() if now - since >= self._lasts)
        if not lasting:
            return None
        return Problem(reason=Reason.SPLIT_SHRUNK, message=_why_short(base, seen, lasting))

    def _recreated(self, base: StreamOffset, seen: Look) -> Problem | None:
        return self._gone(
            "they were deleted and created again. What was not read before that is gone",
            {s: f"from {base.positions[s] or 0} on" for s in sorted(seen.recreated)},
        )

    def _cut(self, base: StreamOffset, seen: Look) -> Problem | None:
        return self._gone(
            "they were cut before the position that was read. Other records may be there now",
            {s: f"{cut} to {base.positions[s] or 0}" for s, cut in sorted(seen.cuts.items())},
        )

    def _deleted(self, base: StreamOffset, seen: Look) -> Problem | None:
        return self._gone(
            "they were deleted before they were read to their end",
            {s: f"{base.positions[s] or 0} to {stop}" for s, stop in sorted(seen.deleted.items())},
        )

    def _gone(self, what: str, ranges: Mapping[SplitId, str]) -> Problem | None:
        if not ranges:
            return None
        skips = self._hooks.may_skip()
        return Problem(
            reason=Reason.SPLITS_SKIPPED if skips else Reason.SPLITS_LOST,
            message=f"{_listed(ranges)}: {what}."
            f" {'The query continues without these records' if skips else _STOPS}",
            is_fatal=not skips,
        )


def unheard(
    base: StreamOffset, seen: Look, awaited: Collection[SplitId], timeout: float
) -> DiscoveryError:
    """Return why a query that ends by itself cannot continue without what it waits for."""
    if short := sorted(seen.short.keys() & set(awaited)):
        return DiscoveryError(_why_short(base, seen, short))
    return DiscoveryError(
        f"ends of {len(awaited)} splits, such as {some(sorted(awaited)[:1])}, are unknown after"
        f" {timeout:.0f} s: check that the servers of the source answer and still have these"
        " splits, then start the query again"
    )


def _why_short(base: StreamOffset, seen: Look, split_ids: Iterable[SplitId]) -> str:
    ranges = {s: f"read up to {base.positions[s] or 0}, ends at {seen.short[s]}" for s in split_ids}
    return _SHORT.format(splits=_listed(ranges))


def _listed(ranges: Mapping[SplitId, str]) -> str:
    shown = [f"{some([s])} ({text})" for s, text in list(ranges.items())[:_SHOWN]]
    more = len(ranges) - len(shown)
    count = "1 split" if len(ranges) == 1 else f"{len(ranges)} splits"
    return f"{count}, {', '.join(shown)}{f' and {more} more' if more else ''}"
