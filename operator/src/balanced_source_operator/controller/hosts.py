"""What the applications of several hosts come down to, and what the status says of each host."""

from collections import Counter
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any, Final

from balanced_source.coordinator import CoordinatorState, HostRole, HostState
from balanced_source.coordinator.phase import acknowledged_epoch
from balanced_source.documents.report import HostReport
from balanced_source.documents.storage import FIRST_HOST, in_host_order
from balanced_source_operator.controller.application_facts import ApplicationState
from balanced_source_operator.controller.decisions import Decision
from balanced_source_operator.controller.facts import Facts
from balanced_source_operator.spec.status import HostStatus

_NONE: Final = Decision(state=ApplicationState.NONE)


def combined(decisions: Mapping[str, Decision], state: CoordinatorState[Any] | None) -> Decision:
    """Return the decision about the source as a whole.

    That of the first host with readers that does not run. A host that has read everything does not
    count while another one reads.

    A host that joins or leaves has no readers, so the others read everything: it is named as a host
    of its own.
    """
    first = decisions.get(FIRST_HOST, _NONE)
    members = state.members if state is not None else tuple(decisions)
    counted = [decisions[host] for host in members if host in decisions]
    counted = [d for d in counted if not d.is_done] or counted
    return next(
        (d for d in counted if d.state is not ApplicationState.RUNNING),
        counted[0] if counted else first,
    )


def hosts_done(decisions: Mapping[str, Decision]) -> frozenset[str]:
    """Return the hosts that have ended with nothing left to read: they report no more."""
    return frozenset(name for name, decision in decisions.items() if decision.is_done)


def reports_of_readers(
    decisions: Mapping[str, Decision], state: CoordinatorState[Any] | None
) -> dict[str, HostReport | None]:
    """Return the newest report of each host that reads; None of one that has not reported.

    A host that is done reports no lag any more, and one that was given up, or has no readers,
    reads nothing: what the others report is all there is.
    """
    if state is None:
        return {}
    done = hosts_done(decisions)
    reading = {
        name: host.report
        for name, host in state.hosts.items()
        if host.role is not HostRole.DRAINING
        and name not in done
        and (state.subtasks_of(name) if name in state.members else _splits(host.report))
    }
    return reading or {name: host.report for name, host in state.hosts.items()}


def _splits(report: HostReport | None) -> bool:
    """Return whether a host has reported splits that it holds."""
    return report is not None and bool(report.owners)


def unfinished_hosts(facts: Facts, state: CoordinatorState[Any]) -> Mapping[str, HostState]:
    """Return the hosts that are not done: only they adopt assignments, and report.

    One that was given up does not count while others read: it gets nothing any more.
    """
    done = hosts_done(facts.hosts)
    left = {name: host for name, host in state.hosts.items() if name not in done}
    reading = {name: host for name, host in left.items() if host.role is not HostRole.DRAINING}
    # Without others no one reads, and that must not look like everything being read.
    return reading or left


def adopted_epoch(facts: Facts, state: CoordinatorState[Any]) -> int:
    """Return the newest epoch that all hosts have adopted, except those that are done.

    A host that is done adopts nothing any more, also if it started again with everything read.
    """
    hosts = unfinished_hosts(facts, state)
    return acknowledged_epoch(replace(state, hosts=hosts)) if hosts else state.epoch


def still_silent(decisions: Mapping[str, Decision], silent: AbstractSet[str]) -> frozenset[str]:
    """Return the silent hosts whose lag is unknown: a host that is done has none."""
    return frozenset(silent) - hosts_done(decisions)


def without_driver(
    decisions: Mapping[str, Decision], state: CoordinatorState[Any]
) -> frozenset[str]:
    """Return the hosts of which no driver runs: what they reported last says nothing of now.

    An application that has ended in order has read what there was.
    """
    known = (ApplicationState.RUNNING, ApplicationState.FINISHED)
    return frozenset(
        name for name in state.members if name in decisions and decisions[name].state not in known
    )


def host_statuses(facts: Facts) -> list[HostStatus]:
    """Return what the status says of each host.

    Nothing for a source with one host, whose numbers these are.
    """
    state = facts.state
    names = (
        in_host_order(dict.fromkeys((*state.hosts, *facts.wanted_hosts)))
        if state is not None
        else {}
    )
    if state is None or len(names) == 1:
        return []
    splits = Counter(state.host_of(owner) for owner in state.owners.values())
    return [_host_status(facts, state, name, splits[name]) for name in names]


def _host_status(facts: Facts, state: CoordinatorState[Any], name: str, splits: int) -> HostStatus:
    host, decision = state.hosts.get(name), facts.hosts.get(name, _NONE)
    if host is None:  # it has handed its splits over, and restarts
        return HostStatus(
            name=name, state=ApplicationState.STOPPING.value, image=facts.images.get(name, "")
        )
    report = host.report
    return HostStatus(
        name=name,
        role=host.role.value,
        application=decision.name,
        state=decision.state.value,
        readers=len(state.subtasks_of(name)),
        splits=splits,
        lag=report.lag if report is not None and name not in facts.silent_hosts else None,
        acknowledged_epoch=host.acknowledged_epoch,
        image=facts.images.get(name, ""),
    )


def running_hosts(statuses: list[HostStatus]) -> str:
    """Return how many hosts run, of how many of a source that has several; else nothing."""
    running = sum(status.state == ApplicationState.RUNNING.value for status in statuses)
    return f"{running}/{len(statuses)}" if statuses else ""
