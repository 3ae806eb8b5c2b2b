"""Says why a query gets no splits, or none any more."""

from collections.abc import Collection, Iterable
from typing import Final

from balanced_source.api import Problem
from balanced_source.documents.assignment import Assignment
from balanced_source.errors import FencedError
from balanced_source_spark.channels.errors import ChannelError

_ASK_THE_OPERATOR: Final = (
    "the operator (or local mode) does not run, or has found nothing to read. Look at its log and at the conditions of "
    "the BalancedSource, then start the query again"
)


def undiscovered(scopes: Collection[str], timeout: float) -> ChannelError:
    """Return the error for scopes that have not been discovered after `timeout` seconds."""
    return ChannelError(
        f"{', '.join(sorted(scopes))} did not answer within {timeout:.0f} s. A query that ends by itself has to know "
        "all that there is to read: check the network and the brokers, and start the query again"
    )


def unassigned(timeout: float, problems: Iterable[Problem] = ()) -> ChannelError:
    """Return the error for a query that has seen no assignment after `timeout` seconds, for these problems."""
    why = "; ".join(problem.message for problem in problems)
    return ChannelError(f"no assignment was seen within {timeout:.0f} s: {why or _ASK_THE_OPERATOR}")


def fenced(assignment: Assignment, host: str) -> FencedError:
    """Return the error for a driver whose place as `host` another one has in `assignment`."""
    return FencedError(
        f"another query has taken over: the assignment is for incarnation {assignment.incarnations[host]} of "
        f"host {host}, and no longer for this query. One query at a time can read a source: stop the other "
        "one before you start this one again"
    )
