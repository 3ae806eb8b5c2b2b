"""What a source has lost, from the reports that its coordinator holds."""

from typing import Any, Final

from balanced_source.api import Problem, ProblemBoard
from balanced_source.coordinator import SourceCoordinator
from balanced_source.errors import ConnectorError
from balanced_source.reasons import Reason
from balanced_source_operator.contract.half import NO_LOSSES, UNKNOWN_LOSSES, Losses
from balanced_source_operator.controller.losses import counted_losses

KEY: Final = "losses"
"""Key of the problem of a connector that fails to say what was lost."""


def known_losses(coordinator: SourceCoordinator[Any, Any] | None, problems: ProblemBoard) -> Losses:
    """Return what the drivers have counted. A connector that fails at it is a problem."""
    if coordinator is None:
        return NO_LOSSES
    hosts = coordinator.state.hosts.values()
    found, problem = NO_LOSSES, None
    try:
        reports = [host.report for host in hosts if host.report is not None]
        found = counted_losses(coordinator.source.kind, reports)
    except ConnectorError as error:
        found = UNKNOWN_LOSSES
        problem = Problem(reason=Reason.CONNECTOR_BROKEN, message=str(error))
    problems.set(KEY, problem)
    return found
