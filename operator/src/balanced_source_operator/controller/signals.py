"""What metrics say of a source besides its status."""

from collections.abc import Mapping

from balanced_source_operator.controller.application_facts import ApplicationState
from balanced_source_operator.controller.facts import Facts
from balanced_source_operator.controller.hosts import adopted_epoch, unfinished_hosts


def signals_of(facts: Facts, *, desired_readers: int | None) -> Mapping[str, float | None]:
    """Return the values by the names of `metrics.OF_SIGNALS`; None where a value is unknown.

    Args:
        facts: what the status is made from.
        desired_readers: of the spec in effect; None if none was ever valid.
    """
    state = facts.state
    has_reported = state is not None and any(host.report for host in state.hosts.values())
    return {
        "desired_readers": desired_readers,
        "epoch_lag": _epoch_lag(facts),
        "discovery_failing_scopes": len(facts.discovery) if state is not None else None,
        "report_timestamp_seconds": _reported_at(facts),
        "skipped_records": facts.losses.records if has_reported else None,
        "skipped_gaps": facts.losses.gaps if has_reported else None,
        "application_failures": _failures(facts),
    }


def _has_ended(facts: Facts) -> bool:
    """Return whether everything is read, so that no driver is expected to say anything."""
    return facts.is_finished or facts.application.is_over


def _epoch_lag(facts: Facts) -> int | None:
    """Return the epochs that are not adopted; None if no driver is meant to run."""
    state = facts.state
    is_at_rest = _has_ended(facts) or facts.application.state is ApplicationState.PAUSED
    if state is None or is_at_rest:
        return None
    return state.epoch - adopted_epoch(facts, state)


def _reported_at(facts: Facts) -> float | None:
    """Return the heartbeat of the host that has been silent longest, of those that still read."""
    if facts.state is None or _has_ended(facts):
        return None
    hosts = unfinished_hosts(facts, facts.state).items()
    # A driver is not silent because the operator cannot take in what it says.
    known = {name: host.report.heartbeat for name, host in hosts if host.report is not None}
    return min((max(at, facts.heard.get(name, at)) for name, at in known.items()), default=None)


def _failures(facts: Facts) -> int:
    """Return the failures in a row of the worst host: the others may run meanwhile."""
    hosts = (decision.failures for decision in facts.hosts.values())
    return max(hosts, default=facts.application.failures)
