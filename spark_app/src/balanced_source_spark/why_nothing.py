"""Says why a query gets no splits, or none any more."""

import time
from collections.abc import Collection
from typing import Final

from balanced_source.documents.assignment import Assignment
from balanced_source.errors import FencedError, InvalidSpecError
from balanced_source_spark.channels.channel import Asking, AssignmentChannel
from balanced_source_spark.channels.errors import ChannelError

ASK_THE_OPERATOR: Final = (
    "the operator (or local mode) has assigned nothing. Check that it runs, look at its log and at"
    " the conditions of the BalancedSource, then start the query again"
)
"""For channels with someone else at their other end."""

LAST_ANSWER: Final = 12.0
"""Seconds for a question that is under way at the end. Clients give up after ten."""

_RETRIES: Final = ("; trying again", "; looking again")


def undiscovered(scopes: Collection[str], timeout: float) -> ChannelError:
    """Return the error for scopes that have not been discovered after `timeout` seconds."""
    return ChannelError(
        f"{', '.join(sorted(scopes))} did not answer within {timeout:.0f} s. A query that ends by"
        " itself has to know all that there is to read: check the network and the servers of the"
        " source, and start the query again"
    )


def unassigned(timeout: float, channel: AssignmentChannel) -> ChannelError:
    """Return the error for a query that has seen no assignment after `timeout` seconds."""
    silence = _silent_servers(channel) if isinstance(channel, Asking) else ASK_THE_OPERATOR
    why = "; ".join(without_retry(problem.message) for problem in channel.problems().values())
    return ChannelError(
        f"{why or silence}. The query waited {timeout:.0f} s: option startTimeoutSeconds"
    )


def _silent_servers(channel: Asking) -> str:
    """For drivers that assign by themselves."""
    scopes = ", ".join(sorted(filter(None, channel.undiscovered)))
    about = f" for {scopes}" if scopes else ""
    return f"no server of the source has answered{about}. Check their addresses and the network"


def check_patience(deadline: float, timeout: float, channel: AssignmentChannel) -> None:
    """Raise `unassigned` after the deadline, which is a moment of the monotonic clock."""
    if is_over(deadline, channel):
        raise unassigned(timeout, channel)


def is_over(deadline: float, channel: AssignmentChannel) -> bool:
    """Return whether a query has waited long enough.

    Not while a question to the source is under way: its answer will say why nothing came, which is
    worth a few seconds more.
    """
    is_asking = isinstance(channel, Asking) and channel.is_asking and not channel.problems()
    return time.monotonic() > deadline + (LAST_ANSWER if is_asking else 0.0)


def without_retry(message: str) -> str:
    """Return the message of a problem for a query that has ended: no one tries again."""
    for suffix in _RETRIES:
        message = message.removesuffix(suffix)
    return message


def ends_itself(connector: str) -> InvalidSpecError:
    """Return the error for a query that is to end by itself, and cannot tell when."""
    return InvalidSpecError(
        f"readers of connector {connector!r} ask for splits while they read. So trigger Once would"
        " read only a part, and trigger AvailableNow and a batch query need a source that ends."
        " Use AvailableNow instead of Once, and let the source end: leave out the interval of"
        " discovery, or set endingOffsets in the last part of a hybrid source. Or use a"
        " ProcessingTime trigger",
        field="options.connector",
    )


def fenced(assignment: Assignment, host: str) -> FencedError:
    """Return the error for a driver whose place as `host` another one has in `assignment`."""
    return FencedError(
        "another query has taken over: the assignment is for incarnation"
        f" {assignment.incarnations[host]} of host {host}, and no longer for this query. One query"
        " at a time can read a source: stop the other one before you start this one again"
    )
