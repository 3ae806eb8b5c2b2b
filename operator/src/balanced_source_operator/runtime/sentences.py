"""What the operator says of itself when a turn failed, or when it is not alone."""

from typing import Final

from balanced_source.api import Problem
from balanced_source.errors import in_short
from balanced_source.names import capitalised
from balanced_source.reasons import Reason
from balanced_source_adapters.mistakes import of_connector
from balanced_source_operator.runtime.environment import Desired

_AGAIN: Final = (
    "starts over from the stored state and retries automatically; the running query is untouched"
)


DEFECT: Final = "defect"
"""Key of the problem that an error is which no one expected."""


def defect(desired: Desired | None, error: BaseException) -> Problem:
    """Return the problem that an error is which no one expected.

    Args:
        desired: what was served; None if that is unknown.
        error: as it was raised.
    """
    source = desired.source if desired is not None else None
    if (found := of_connector(source, error)) is not None:
        message = f"{capitalised(str(found))}. The operator {_AGAIN}"
        return Problem(reason=Reason.CONNECTOR_BROKEN, message=message)
    message = (
        f"The operator failed with {in_short(error)}. It {_AGAIN}. Report this message and the"
        " operator's log"
    )
    return Problem(reason=Reason.INTERNAL_ERROR, message=message)


def rival_problem(own: str, rival: str) -> Problem:
    """Return the problem of two operators that serve one source."""
    message = (
        f"Two operators serve this source: {own} and {rival}. Set watchNamespaces or"
        " watchNamespaceSelector of the two releases so that no namespace is in both, or uninstall"
        " one of them. After a namespace has moved between them, this message ends by itself within"
        " 3 minutes"
    )
    return Problem(reason=Reason.STATE_CONFLICT, message=message)
