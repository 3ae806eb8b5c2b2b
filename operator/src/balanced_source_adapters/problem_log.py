"""The log lines of problems, for hosts without an operator: each change once."""

from balanced_source.api import ProblemChange
from balanced_source_adapters.lazy_log import get_logger

log = get_logger(__name__)


def log_problem(change: ProblemChange) -> None:
    """Log that a problem appeared, changed, or is resolved."""
    if (problem := change.after) is not None:
        log.warning(
            problem.message, reason=problem.reason, scope=problem.scope, fatal=problem.is_fatal
        )
    elif (problem := change.before) is not None:
        log.info(
            "problem resolved", message=problem.message, reason=problem.reason, scope=problem.scope
        )
