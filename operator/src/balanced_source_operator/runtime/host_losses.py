"""Which hosts are lost for so long that others should read their splits, and what is said."""

import math
import time
from collections.abc import Collection, Iterator
from typing import Any, Final

from balanced_source.api import Problem, ProblemBoard
from balanced_source.coordinator import (
    CoordinatorState,
    HostGivenUp,
    HostPhase,
    HostRole,
    HostSilent,
    HostState,
    SourceCoordinator,
)
from balanced_source.names import counted
from balanced_source.reasons import Reason
from balanced_source_operator.controller.application_facts import (
    ApplicationState,
    name_of,
    state_of,
)
from balanced_source_operator.controller.ended_hosts import has_read_all, is_waited_for
from balanced_source_operator.controller.liveness import ALIVE, Pulses
from balanced_source_operator.runtime.observed import Observed
from balanced_source_operator.spec import BalancedSourceSpec
from balanced_source_operator.spec.host_loss import Guarantee, HostLoss, HostLossPolicy

QUIET: Final = 120.0
"""Seconds without a report of any driver after which people are told: longer than a watch that has
ended unnoticed keeps reports from us."""

STARTING: Final = 300.0
"""The same for drivers that have just been started again: JVM, packages and executors take time."""

_KEY = "lost host"
_QUIET = "no driver reports"


class HostLosses:
    """Of one source.

    Args:
        pulses: of its hosts.
        problems: where lost hosts are named.
        observed: has the applications.
    """

    def __init__(self, pulses: Pulses, problems: ProblemBoard, observed: Observed) -> None:
        self._pulses = pulses
        self._observed = observed
        self._running: frozenset[str] = frozenset()
        self._running_since = -math.inf
        self._problems = problems
        self._named: set[str] = set()
        self._unheard: dict[str, float] = {}
        self._after, self._patience = 0.0, QUIET

    def events(
        self, coordinator: SourceCoordinator[Any, Any], spec: BalancedSourceSpec
    ) -> list[HostSilent | HostGivenUp]:
        """Return what to tell of lost hosts: that they get nothing more, or that others take over.

        All lost hosts are named on the board. Hosts that have ended with nothing left to read are
        not lost, but they acknowledge nothing either.
        """
        state = coordinator.state
        if spec.suspend:
            self._forget()
            return []
        done = self._done(coordinator)
        # Their last reports are final: others continue there, and no drain attempt is needed.
        leaving = [
            HostGivenUp(name, state.hosts[name].incarnation, accepts_duplicates=True)
            for name in done
            if is_waited_for(state, name)
        ]
        return leaving + self._of_lost(state, spec.application.host_loss_policy, done)

    def _forget(self) -> None:
        """Name no host: all of them are stopped, because the user wants it."""
        for name in self._named:
            self._problems.clear((_KEY, name))
        self._problems.clear(_QUIET)
        self._named, self._unheard, self._running = set(), {}, frozenset()

    def _done(self, coordinator: SourceCoordinator[Any, Any]) -> list[str]:
        """Return the hosts whose applications have ended with nothing left to read."""
        state, source, applications = (
            coordinator.state,
            coordinator.source,
            self._observed.by_host,
        )
        return [
            name
            for name in state.hosts
            if has_read_all(state, source, name, applications.get(name, []))
        ]

    def _of_lost(
        self, state: CoordinatorState[Any], policy: HostLossPolicy, done: Collection[str]
    ) -> list[HostSilent | HostGivenUp]:
        now, self._after = time.monotonic(), policy.seconds
        self._note_unheard(state, now)
        self._note_quiet(state, now)
        is_heard = self._pulses.is_heard(now=now)
        lost = {
            name: host
            for name, host in state.hosts.items()
            # The splits of a host that is alone can go to nobody. One that was lost is not back
            # because no other one is heard any more.
            if len(state.hosts) > 1
            and name not in done
            and (self._is_lost(name, host, now) or (name in self._named and not is_heard))
        }
        for name in self._named - lost.keys():
            self._problems.clear((_KEY, name))
        self._named = set(lost)
        # While no other host reports, the outage may be that of the API server or of our own watch.
        reassigns = policy.type is HostLoss.REASSIGN
        duplicates = policy.guarantee is Guarantee.AT_LEAST_ONCE
        # A host that joins has no splits yet, and one that drains is given up already.
        hopeless = {
            name: host
            for name, host in lost.items()
            if reassigns
            and is_heard
            and (
                host.role in (HostRole.MEMBER, HostRole.LEAVING)
                # The user did not want to wait for the drain attempt any longer.
                or (duplicates and host.role is HostRole.DRAINING and _is_told(host))
            )
            and self._has_successor(state, now, of=host)
        }
        for name, host in lost.items():
            after = HostRole.JOINING if duplicates and _is_told(host) else HostRole.DRAINING
            role = after if name in hopeless else host.role
            self._problems.set((_KEY, name), _problem(state, name, role, policy))
        # The splits of one that is waited for stay with it, but it gets no others.
        return [
            HostGivenUp(name, host.incarnation, accepts_duplicates=duplicates)
            if name in hopeless
            else HostSilent(name, host.incarnation)
            for name, host in lost.items()
            if is_heard
        ]

    def pause(self) -> float | None:
        """Return the seconds until the next silent host counts as lost; None if none is silent."""
        now = time.monotonic()
        left = [
            self._after - self._pulses.silence(host, now=now)
            for host in self._pulses.silent(now=now)
        ]
        left += [since + self._after - now for since in self._unheard.values()]
        # A driver that is heard now falls silent first, and that ends the pause.
        if self._pulses.pause(now=now) is None:
            left.append(self._quiet_since() + self._patience - now)
        return min((seconds for seconds in left if 0 < seconds < math.inf), default=None)

    def _quiet_since(self) -> float:
        """Since when no driver was heard although applications run; infinity if none runs."""
        heard_at = self._pulses.heard_at
        if not self._running or heard_at == -math.inf:
            return math.inf
        # An application that has just started, as after a suspension, needs time to register.
        return max(heard_at, self._running_since)

    def _note_quiet(self, state: CoordinatorState[Any], now: float) -> None:
        """Tell if no driver reports: nothing else says that all of them hang."""
        running = {
            found["metadata"]["uid"]: name_of(found)
            for several in self._observed.by_host.values()
            for found in several
            if state_of(found) is ApplicationState.RUNNING
        }
        if running.keys() != self._running:
            self._running, self._running_since = frozenset(running), now
        starting = self._pulses.starting(state)
        self._patience = STARTING if starting else QUIET
        is_quiet = now - self._quiet_since() >= self._patience
        found = _slow(sorted(starting.values())) if starting else _quiet(sorted(running.values()))
        self._problems.set(_QUIET, found if is_quiet else None)

    def _note_unheard(self, state: CoordinatorState[Any], now: float) -> None:
        """Note since when others report and a host that may hold splits was not heard.

        That is so when the state was lost. Other hosts that have not come have deadlines of their
        own, see `HostDeadlines`.
        """
        self._unheard = {
            name: self._unheard.get(name, now)
            for name, host in state.hosts.items()
            if not state.is_first_life
            and host.phase is HostPhase.EXPECTED
            and host.role is not HostRole.JOINING
            and self._has_successor(state, now, of=host)
        }

    def _is_lost(self, name: str, host: HostState, now: float) -> bool:
        if host.phase is HostPhase.EXPECTED:
            return now - self._unheard.get(name, now) >= self._after
        is_settled = host.phase in (HostPhase.ACTIVE, HostPhase.LOST)
        return is_settled and self._pulses.silence(name, now=now) >= self._after

    def _has_successor(self, state: CoordinatorState[Any], now: float, *, of: HostState) -> bool:
        """Whether a host with readers reports, so that it can take over.

        The gate waits for a host that was not heard since the state was lost, so others are behind
        the gate until that host is drained.
        """
        is_awaited = of.phase is HostPhase.EXPECTED
        able = (HostPhase.ACTIVE, HostPhase.RECOVERING) if is_awaited else (HostPhase.ACTIVE,)
        return any(
            state.hosts[name].phase in able and self._pulses.silence(name, now=now) < ALIVE
            for name in state.members
        )


def _is_told(host: HostState) -> bool:
    """Whether its positions are known as of its last report: it was heard since a loss."""
    return host.phase is not HostPhase.EXPECTED


def _slow(pods: list[str]) -> Problem:
    message = (
        f"driver pod {', '.join(pods)} has run for {STARTING:.0f} s and has not registered, so"
        " nothing is read as far as is known. Its log says what it waits for, such as packages or"
        " executors. Deleting the pod would begin its start again"
    )
    return Problem(reason=Reason.DRIVER_SILENT, message=message)


def _quiet(applications: list[str]) -> Problem:
    runs = "runs" if len(applications) == 1 else "run"
    message = (
        f"no driver of this source has reported for {QUIET:.0f} s, although"
        f" {', '.join(applications)} {runs}: what is read, and the lag, are unknown. See the logs"
        " of the drivers, and whether they reach the API server. If one hangs, delete its pod:"
        " another one continues from the checkpoint"
    )
    return Problem(reason=Reason.DRIVER_SILENT, message=message)


def _problem(
    state: CoordinatorState[Any], name: str, role: HostRole, policy: HostLossPolicy
) -> Problem:
    message = (
        f"Host {name} has not reported for {policy.seconds:.0f} s."
        f" {_who_reads(state, name, role, policy)}"
    )
    return Problem(reason=Reason.HOST_LOST, message=message, scope=name)


def _who_reads(
    state: CoordinatorState[Any], name: str, role: HostRole, policy: HostLossPolicy
) -> str:
    splits = counted(sum(1 for _ in _held(state, name)), "split")
    if state.hosts[name].phase is HostPhase.EXPECTED and role is not HostRole.DRAINING:
        # No one knows how many: its Spark checkpoint alone says what it holds.
        return (
            "It may hold splits since before the documents of the source were lost, so nothing is"
            " read until it has registered: see the pod of its driver"
        )
    match role:
        case HostRole.JOINING:
            return "The other hosts read its splits"
        case HostRole.DRAINING:
            return (
                f"Its {splits} will go to the other hosts when a drain attempt has settled what it"
                " delivered. If the attempt does not start, see its SparkApplication and the pod"
                " of its driver"
            )
        case HostRole.MEMBER | HostRole.LEAVING if policy.type is HostLoss.REASSIGN:
            return (
                f"Its {splits} must wait, because no other host reports that could take them over"
            )
        case _:
            return (
                f"Its {splits} must wait until its application runs again: see the pod of its"
                " driver"
            )


def _held(state: CoordinatorState[Any], name: str) -> Iterator[Any]:
    is_held = state.is_held_by(name)
    return (split_id for split_id in {*state.owners, *state.revoking} if is_held(split_id))
