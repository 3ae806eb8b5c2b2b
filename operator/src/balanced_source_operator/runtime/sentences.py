"""What the operator says of itself when a turn failed, or when it is not alone."""

from balanced_source.api import Problem
from balanced_source.errors import in_short
from balanced_source.reasons import Reason


def internal_error(error: Exception) -> str:
    """Return the sentence for an error that no one expected."""
    return (
        f"The operator failed with {in_short(error)}. It starts over from the stored"
        " state and retries automatically; the running query is untouched. Report this message and"
        " the operator's log"
    )


def rival_problem(own: str, rival: str) -> Problem:
    """Return the problem of two operators that serve one source."""
    message = (
        f"Two operators serve this source: {own} and {rival}. Set watchNamespaces of the two"
        " releases so that no namespace is in both, or uninstall one of them"
    )
    return Problem(reason=Reason.STATE_CONFLICT, message=message)
