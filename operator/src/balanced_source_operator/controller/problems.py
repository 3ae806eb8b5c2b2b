"""All problems of a source, from everything that is known of it.

What conditions, events and log lines say.
"""

from collections.abc import Mapping
from dataclasses import replace

from balanced_source.api import Problem, discovery_problem
from balanced_source.coordinator.phase import source_phase
from balanced_source.errors import RefusedDiscoveryError
from balanced_source.lifecycles import SourcePhase
from balanced_source.reasons import Reason
from balanced_source.severity import CHECKPOINT_REASONS, is_loss, severity
from balanced_source_operator.controller.application_facts import ApplicationState
from balanced_source_operator.controller.facts import Facts


def problems_of(facts: Facts) -> list[Problem]:
    """Return all problems, the worst first."""
    return list(dict.fromkeys([*degradations_of(facts), *losses_of(facts)]))


def degradations_of(facts: Facts) -> list[Problem]:
    """Return the problems that degrade the source now, the worst first."""
    found = [
        *(_with_progress(problem, facts) for problem in facts.problems),
        *discovery_problems(facts.discovery),
        *(problem for problem in reported(facts) if not _is_past(problem, facts)),
    ]
    missing = missing_readers(facts)
    if facts.is_overdue and missing is not None:
        advice = "nothing is assigned to them until they register: see the log of the driver's pod"
        found.append(Problem(reason=Reason.READERS_MISSING, message=f"{missing.message}; {advice}"))
    decisions = [facts.application, *facts.hosts.values()]
    wrong = (decision.problem or decision.relapse for decision in decisions)
    found += dict.fromkeys(problem for problem in wrong if problem is not None)
    return sorted(found, key=lambda problem: severity(problem.reason))


def _with_progress(problem: Problem, facts: Facts) -> Problem:
    """Add to the loss of a host what its next application waits for."""
    decision = facts.hosts.get(problem.scope) if problem.reason == Reason.HOST_LOST else None
    if decision is None or not decision.message:
        return problem
    return replace(problem, message=f"{problem.message}. Now: {decision.message}")


def losses_of(facts: Facts) -> list[Problem]:
    """Return problems after which the sink lacks or may lack records, while reading continues."""
    skipped = [p for p in reported(facts) if is_loss(p.reason) and not p.is_fatal]
    return [*skipped, *facts.losses.problems]


def discovery_problems(errors: Mapping[str, Exception]) -> list[Problem]:
    """Return the problems that errors of discovery are, by scope."""
    return [
        discovery_problem(error, scope=scope, is_fatal=isinstance(error, RefusedDiscoveryError))
        for scope, error in sorted(errors.items())
    ]


def _is_past(problem: Problem, facts: Facts) -> bool:
    """Whether what a driver reports is over, so that it degrades nothing any more.

    Of a loss, a checkpoint degrades until it has caught up. Of a suspended source, only losses
    are more than the trouble of a driver that is gone.
    """
    if facts.application.reason == Reason.SUSPENDED and not is_loss(problem.reason):
        return True
    is_lost = is_loss(problem.reason) and not problem.is_fatal
    return is_lost and problem.reason not in CHECKPOINT_REASONS


def reported(facts: Facts) -> list[Problem]:
    """Return the problems that drivers report.

    Of a driver that has been started again, only what its predecessor has lost is still so.
    """
    hosts = facts.state.hosts.items() if facts.state else ()
    return [
        problem
        for name, host in hosts
        if host.report is not None
        for problem in host.report.problems
        if name not in facts.starting or is_loss(problem.reason)
    ]


def missing_readers(facts: Facts) -> Problem | None:
    """Return what is known of readers that a running application has not registered.

    None if all are there.
    """
    if facts.waiting_for:
        return Problem(
            reason=Reason.RECOVERING,
            message=f"waiting for readers of host {', '.join(facts.waiting_for)}",
        )
    runs = facts.application.state is ApplicationState.RUNNING
    if runs and facts.state is not None and source_phase(facts.state) is SourcePhase.WAITING:
        return Problem(
            reason=Reason.WAITING_FOR_READERS,
            message="the application runs; its readers have not registered yet",
        )
    if runs and facts.starting:
        pods = ", ".join(sorted(facts.starting.values()))
        return Problem(
            reason=Reason.WAITING_FOR_READERS,
            message=f"driver pod {pods} has started; its readers have not registered yet",
        )
    return None
