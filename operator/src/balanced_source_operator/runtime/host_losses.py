"""Which hosts are lost for so long that others should read their splits, and what is said."""

import time
from collections.abc import Iterator
from typing import Any

from balanced_source.api import Problem, ProblemBoard
from balanced_source.coordinator import (
    CoordinatorState,
    HostGivenUp,
    HostPhase,
    HostRole,
    HostState,
)
from balanced_source.reasons import Reason
from balanced_source_operator.controller.liveness import ALIVE, Pulses
from balanced_source_operator.spec.host_loss import Guarantee, HostLoss, HostLossPolicy

_KEY = "lost host"


class HostLosses:
    """Of one source.

    Args:
        pulses: of its hosts.
        problems: where lost hosts are named.
    """

    def __init__(self, pulses: Pulses, problems: ProblemBoard) -> None:
        self._pulses = pulses
        self._problems = problems
        self._named: set[str] = set()
        self._after = 0.0

    def given_up(self, state: CoordinatorState[Any], policy: HostLossPolicy) -> list[HostGivenUp]:
        """Return the hosts to give up now. Lost hosts, given up or not, are named on the board."""
        now, self._after = time.monotonic(), policy.seconds
        lost = {
            name: host
            for name, host in state.hosts.items()
            # The splits of a host that is alone can go to no one.
            if len(state.hosts) > 1
            # Hosts that have not come yet have deadlines of their own, see HostDeadlines.
            and host.phase in (HostPhase.ACTIVE, HostPhase.LOST)
            and self._is_lost(name, now)
        }
        for name in self._named - lost.keys():
            self._problems.clear((_KEY, name))
        self._named = set(lost)
        for name, host in lost.items():
            self._problems.set((_KEY, name), _problem(state, name, host, policy))
        # While no other host reports, the outage may be that of the API server or of our own watch.
        if policy.type is HostLoss.WAIT or not self._has_successor(state, now):
            return []
        duplicates = policy.guarantee is Guarantee.AT_LEAST_ONCE
        # A host that joins has no splits yet, and one that drains is given up already.
        members = ((name, host) for name, host in lost.items() if host.role is HostRole.MEMBER)
        return [
            HostGivenUp(name, host.incarnation, accepts_duplicates=duplicates)
            for name, host in members
        ]

    def pause(self) -> float | None:
        """Return the seconds until the next silent host counts as lost; None if none is silent."""
        now = time.monotonic()
        left = [
            self._after - self._pulses.silence(host, now=now)
            for host in self._pulses.silent(now=now)
        ]
        return min((seconds for seconds in left if seconds > 0), default=None)

    def _is_lost(self, host: str, now: float) -> bool:
        return self._pulses.silence(host, now=now) >= self._after

    def _has_successor(self, state: CoordinatorState[Any], now: float) -> bool:
        """Whether a host with readers reports, so that it can take over."""
        return any(
            state.hosts[name].phase is HostPhase.ACTIVE
            and self._pulses.silence(name, now=now) < ALIVE
            for name in state.members
        )


def _problem(
    state: CoordinatorState[Any], name: str, host: HostState, policy: HostLossPolicy
) -> Problem:
    message = (
        f"Host {name} has not reported for {policy.seconds:.0f} s."
        f" {_who_reads(state, name, host, policy)}"
    )
    return Problem(reason=Reason.HOST_LOST, message=message, scope=name)


def _who_reads(
    state: CoordinatorState[Any], name: str, host: HostState, policy: HostLossPolicy
) -> str:
    splits = f"Its {sum(1 for _ in _held(state, name))} splits"
    match host.role:
        case HostRole.JOINING:
            return "The other hosts read its splits"
        case HostRole.DRAINING:
            return (
                f"{splits} go to the other hosts when a drain attempt has settled what it"
                " delivered. If the attempt does not start, see its SparkApplication and the pod"
                " of its driver"
            )
        case HostRole.MEMBER if policy.type is HostLoss.REASSIGN:
            return f"{splits} wait, because no other host reports that could take them over"
        case _:
            return f"{splits} wait until its application runs again: see the pod of its driver"


def _held(state: CoordinatorState[Any], name: str) -> Iterator[Any]:
    is_held = state.is_held_by(name)
    return (split_id for split_id in {*state.owners, *state.revoking} if is_held(split_id))
