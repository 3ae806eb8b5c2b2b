"""Tells of splits whose records are gone, for hooks that do not override `note_look`."""

from collections.abc import Callable, Mapping
from typing import Final

from balanced_source.api import Problem, ProblemKey, SplitId
from balanced_source.connectors.discovery import some
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.host.ends import Look
from balanced_source.names import counted
from balanced_source.reasons import Reason

_KEY: Final = "splits"
"""First part of the keys of these problems."""

_SHOWN: Final = 3
"""Splits that a message names."""

_STOPS: Final = (
    "The connector does not skip lost records. Restore the data, or start the query with a new"
    " checkpointLocation"
)


class LostSplits:
    """See the module. Used by the planning thread.

    Args:
        set_problem: sets or clears a problem of the query.
        check_problems: see `PlannerContext.check_problems`.
        may_skip: see `PlannerHooks.may_skip`.
    """

    def __init__(
        self,
        set_problem: Callable[[ProblemKey, Problem | None], None],
        check_problems: Callable[[], None],
        may_skip: Callable[[], bool],
    ) -> None:
        self._set_problem = set_problem
        self._check_problems = check_problems
        self._may_skip = may_skip
        self._has_told = False

    def note(self, base: StreamOffset, seen: Look) -> None:
        """Do what `PlannerHooks.note_look` asks for."""
        # Nearly always there is nothing to tell, and an idle query looks a hundred times a second.
        is_lost = bool(seen.recreated or seen.cuts or seen.deleted)
        if not (is_lost or self._has_told):
            return
        self._has_told = is_lost
        held = {s: position or 0 for s, position in base.positions.items()}
        self._tell(
            "recreated",
            "deleted and created again. What was not read before that is gone",
            {s: f"from {held[s]} on" for s in sorted(seen.recreated)},
        )
        self._tell(
            "cut",
            "cut before the position that was read. Other records may be there now",
            {s: f"{cut} to {held[s]}" for s, cut in sorted(seen.cuts.items())},
        )
        self._tell(
            "deleted",
            "deleted before being read to the end",
            {s: f"{held[s]} to {stop}" for s, stop in sorted(seen.deleted.items())},
        )
        self._check_problems()

    def _tell(self, kind: str, what: str, ranges: Mapping[SplitId, str]) -> None:
        self._set_problem((_KEY, kind), self._problem(what, ranges) if ranges else None)

    def _problem(self, what: str, ranges: Mapping[SplitId, str]) -> Problem:
        skips = self._may_skip()
        return Problem(
            reason=Reason.SPLITS_SKIPPED if skips else Reason.SPLITS_LOST,
            message=f"{listed(ranges)}: {what}."
            f" {'The query continues without these records' if skips else _STOPS}",
            is_fatal=not skips,
        )


def listed(ranges: Mapping[SplitId, str]) -> str:
    """Return how many splits these are, and the first of them with what is said of each."""
    shown = [f"{some([s])} ({text})" for s, text in list(ranges.items())[:_SHOWN]]
    more = len(ranges) - len(shown)
    count = counted(len(ranges), "split")
    return f"{count}, {', '.join(shown)}{f' and {more} more' if more else ''}"
