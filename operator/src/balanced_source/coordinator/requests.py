"""Requests of readers for splits: what a report asks for, and how much of it is answered.

A request is a level, not a message: each report says how many splits a reader lacks. So nothing is
lost with a report, an assignment, a driver or an operator, and nothing has to be stored.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from balanced_source.coordinator.state import CoordinatorState, SplitT
from balanced_source.documents.report import HostReport


def unanswered(
    state: CoordinatorState[SplitT], report: HostReport, asked: Mapping[int, int]
) -> Mapping[int, int]:
    """Return how many splits the enumerator must still be asked for, by reader.

    Args:
        state: in which the report was taken in.
        report: of an active host.
        asked: requests that the enumerator knows already.
    """
    if not report.requests:
        return {}
    # Given since that report: the host has not adopted these yet, so it counts them as missing.
    given = Counter(
        owner for split_id, owner in state.owners.items() if split_id not in report.positions
    )
    subtasks = frozenset(state.subtasks_of(report.host))
    lacking = {
        # A request is a level. Without the subtraction each report would ask for the same again,
        # and readers would hoard splits.
        s: n - given[s] - asked.get(s, 0)
        for s, n in sorted(report.requests.items())
        if s in subtasks
    }
    return {subtask: count for subtask, count in lacking.items() if count > 0}


def answered(asked: Mapping[int, int], owners: Iterable[int]) -> Mapping[int, int]:
    """Return the remaining requests, one less for each time that a reader is in `owners`."""
    if not asked:
        return asked
    given = Counter(owners)
    return {
        subtask: left for subtask, count in asked.items() if (left := count - given[subtask]) > 0
    }
