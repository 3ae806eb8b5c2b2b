"""Which parts of a source are left out and may still be read, from what its coordinator knows."""

from collections.abc import Mapping
from typing import Any, Final

from balanced_source.api import Problem, ProblemBoard, SplitId
from balanced_source.coordinator import SourceCoordinator
from balanced_source.errors import ConnectorError
from balanced_source.reasons import Reason
from balanced_source_operator.controller.leaving import left_out

KEY: Final = "left out"
"""Key of the problem of a connector that fails to name the parts."""


def known_left_out(
    coordinator: SourceCoordinator[Any, Any] | None, problems: ProblemBoard
) -> Mapping[SplitId, str]:
    """Return `left_out` of a source. A connector that fails at it is a problem."""
    if coordinator is None:
        return {}
    found: Mapping[SplitId, str] = {}
    problem = None
    try:
        found = left_out(coordinator.source, coordinator.state)
    except ConnectorError as error:
        problem = Problem(reason=Reason.CONNECTOR_BROKEN, message=str(error))
    problems.set(KEY, problem)
    return found
