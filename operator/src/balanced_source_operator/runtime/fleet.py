"""The applications of all hosts of a source, each with what it owns.

One that fails does not hold up the others.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from balanced_source.api import ProblemBoard
from balanced_source.coordinator import SourceCoordinator
from balanced_source.coordinator.phase import acknowledged_epoch
from balanced_source.documents.storage import FIRST_HOST, in_host_order
from balanced_source.reasons import Reason
from balanced_source_operator.controller.application_facts import ApplicationState
from balanced_source_operator.controller.decisions import Decision
from balanced_source_operator.controller.hosts import hosts_done
from balanced_source_operator.controller.restarts import Hold, after_hosts
from balanced_source_operator.kube.port import KubernetesError, RefusedError
from balanced_source_operator.resources.identity import Identity
from balanced_source_operator.resources.providers import image_of
from balanced_source_operator.runtime.children import Children
from balanced_source_operator.runtime.environment import Desired, Environment
from balanced_source_operator.runtime.events import EventRecorder
from balanced_source_operator.runtime.hand_over import STEADY, HandOver, Roll
from balanced_source_operator.runtime.observed import Observed
from balanced_source_operator.runtime.refused_hosts import RefusedHosts
from balanced_source_operator.spec.hosts import host_names

SECOND_HOST: Final = "1"
"""Takes over from the first host while that one restarts."""

Decisions = Mapping[str, Decision]
"""What was decided about the application of each host, by its name.

The first host is always there.
"""


class Fleet:
    """Of one source. Hosts are known from the coordinator, and from applications that are there."""

    def __init__(
        self,
        environment: Environment,
        source: Identity,
        observed: Observed,
        events: EventRecorder,
        problems: ProblemBoard,
        *,
        wake: Callable[[], None],
    ) -> None:
        self._identity = source
        self._wake = wake
        self._has_looked = False
        self._observed = observed
        self._environment = environment
        self._events = events
        self._problems = problems
        self._children: dict[str, Children] = {}
        self._last: dict[str, Decision] = {}
        self._refused = RefusedHosts()
        self._hand_over = HandOver(environment.settings.stuck_after, wake)

    @property
    def has_refused(self) -> bool:
        """Whether the API server refuses objects of one of several hosts."""
        return bool(self._refused)

    @property
    def roll(self) -> Roll:
        """Which hosts come and go now because an application restarts with changed settings."""
        return self._hand_over.roll

    async def turn(
        self,
        desired: Desired,
        coordinator: SourceCoordinator[Any, Any] | None,
        *,
        needs_driver: bool = False,
    ) -> Decisions:
        """Make the children of all hosts what they should be.

        Applications of hosts that are gone are stopped.

        Raises:
            KubernetesError: the API server does not answer, or refused something for one of the
                hosts.
        """
        decisions = await self._turn(desired, coordinator, needs_driver=needs_driver)
        self._note_restart(decisions, coordinator)
        return decisions

    async def _turn(
        self,
        desired: Desired,
        coordinator: SourceCoordinator[Any, Any] | None,
        *,
        needs_driver: bool,
    ) -> Decisions:
        # Without a state that can be trusted no one knows which hosts hold splits: none is retired.
        if coordinator is None:
            return await self._each(
                (FIRST_HOST,), lambda c, _: self._only(c, desired, needs_driver)
            )
        wanted, names = tuple(coordinator.state.hosts), host_names(desired.spec)

        async def act(children: Children, host: str) -> Decision:
            if host not in wanted:
                self._refused.clear(host)
                return await children.retire()
            if (paused := self._refused.paused(host, desired.spec)) is not None:
                return paused
            is_first = host == FIRST_HOST
            others = [other for other in names if other != host]
            turn = children.turn(
                desired,
                coordinator,
                # Only the first host's driver makes calls for the operator.
                needs_driver=needs_driver and is_first,
                # A host that has not read anything yet has nothing to lose, and may be what the
                # others wait for.
                turn=self._waits_for(host, others, desired, coordinator)
                if children.has_adopted(coordinator)
                else None,
                may_restart=self._may_restart,
                hand_over=lambda: self._hand_over.begin(
                    host,
                    coordinator.state,
                    others=others,
                    # One that has read everything has nothing to hand over, and is not there.
                    absent=coordinator.silent_hosts | hosts_done(self._last),
                    second=_second(host, desired),
                ),
            )
            # With one host a refusal ends the turn, which reports it; with several it must not stop
            # the others.
            self._last[host] = await (
                turn if len(wanted) == 1 else self._unless_refused(host, turn, desired)
            )
            return self._last[host]

        self._hand_over.note_turn()
        decisions = await self._each(tuple(dict.fromkeys((*wanted, *self._present))), act)
        self._hand_over.note_end(known=set(wanted), present=self._observed.by_host.keys())
        for host in self._children.keys() - {FIRST_HOST, *wanted, *self._present}:
            self._children.pop(host).forget()
            self._last.pop(host, None)
            self._refused.clear(host)
        # A host that is gone from the state has no readers: its application says nothing about the
        # source.
        return {host: decision for host, decision in decisions.items() if host in wanted}

    async def _unless_refused(
        self, host: str, turn: Awaitable[Decision], desired: Desired
    ) -> Decision:
        """Return what is decided about one of several hosts.

        One whose objects are refused does not stop the others.
        """
        try:
            decision = await turn
        except RefusedError as error:
            seen = self._of(host).look(until="the API server accepts its objects")
            return self._refused.note(host, desired.spec, error, seen=seen)
        self._refused.clear(host)
        return decision

    async def _only(self, children: Children, desired: Desired, needs_driver: bool) -> Decision:
        return await children.turn(
            desired, None, needs_driver=needs_driver, may_restart=self._may_restart
        )

    def _may_restart(self) -> bool:
        """Ask for a place among the sources that restart.

        A hand-over that has lost its place, because it takes long, is carried through: to break it
        off would move the splits back, and each try would be broken off in its turn.
        """
        if self._hand_over.roll != STEADY:
            return True
        return self._environment.restarts.take(self._identity, self._wake)

    def _note_restart(
        self, decisions: Decisions, coordinator: SourceCoordinator[Any, Any] | None
    ) -> None:
        """Keep the place in the process's queue of restarts only while one waits or is under way.

        An operator that has just started continues with what the one before it has begun.
        """
        slots, is_first_look, self._has_looked = (
            self._environment.restarts,
            not self._has_looked,
            True,
        )
        if any(
            d.pending is not None and d.pending.reason == Reason.WAITING_FOR_OTHER_SOURCES
            for d in decisions.values()
        ):
            return
        slots.withdraw(self._identity)
        if self._hand_over.host is None and all(
            d.state is ApplicationState.RUNNING and not d.reason for d in decisions.values()
        ):
            slots.release(self._identity)
        elif is_first_look and coordinator is not None and acknowledged_epoch(coordinator.state):
            slots.resume(self._identity)

    def _waits_for(
        self,
        host: str,
        others: list[str],
        desired: Desired,
        coordinator: SourceCoordinator[Any, Any],
    ) -> Hold | None:
        """Return which other hosts come before a host that runs; None if it is its turn."""
        # A host that has not run for long, whatever its settings are, would be waited for without
        # end; so would one that has read its bounded splits.
        passed = desired.skipped_hosts | hosts_done(self._last)
        first = [
            other
            for other in others
            if other not in passed
            and not (
                self._runs(other)
                and self._of(other).has_adopted(coordinator)
                and other not in coordinator.silent_hosts
            )
        ]
        away = self.roll.away
        if away is not None and away not in (host, *first):
            first.append(away)
        return after_hosts(first, broken=desired.broken_hosts) if first else None

    def _runs(self, host: str) -> bool:
        """Whether a host's application runs, as last seen, so that another host may be stopped."""
        known = self._last.get(host)
        return (
            known is not None and known.state is ApplicationState.RUNNING and known.problem is None
        )

    async def stop(self) -> Decisions:
        """Stop all applications. Needs no valid spec and no document: this is the emergency stop.

        Raises:
            KubernetesError: the API server does not answer, or refused.
        """
        self.leave()
        return await self._each(self._present, lambda children, _: children.stop())

    def leave(self) -> None:
        """Hold up the restart of no other source."""
        self._environment.restarts.release(self._identity)

    def withdraw(self) -> None:
        """Let other sources restart first: this one cannot while its turns fail."""
        self._environment.restarts.withdraw(self._identity)

    def look(self, *, until: str) -> Decisions:
        """Return what the applications do, while nothing can be decided about them.

        Args:
            until: what must happen before, in words.
        """
        return {host: self._of(host).look(until=until) for host in self._present}

    def look_after(self, decided: Decisions) -> Decisions:
        """Return what was decided, or what applications do that do something else by now.

        For turns that fail: an application that has failed meanwhile must not be taken to run.
        """
        found = {}
        for host in dict.fromkeys((*self._present, *decided)):
            seen = self._of(host).look(until="the operator can do its work again")
            before = decided.get(host, seen)
            # What was to be started then was not, and something else may be the cause by now.
            is_gone = seen.state is ApplicationState.NONE
            found[host] = before if _is_so(before, seen) and not is_gone else seen
        return found

    async def delete_unbound(self) -> None:
        """See `Children.delete_unbound`."""
        for host in self._present:
            await self._of(host).delete_unbound()

    @property
    def images(self) -> Mapping[str, str]:
        """Image of the application of each host."""
        return {host: image_of(found[-1]) for host, found in self._observed.by_host.items()}

    @property
    def _present(self) -> tuple[str, ...]:
        """Hosts that have an application, and the first one."""
        return tuple(in_host_order({FIRST_HOST: [], **self._observed.by_host}))

    def _of(self, host: str) -> Children:
        if host not in self._children:
            source = self._identity.on_host(host)
            parts = (self._observed, self._events, self._problems)
            self._children[host] = Children(self._environment, source, *parts)
        return self._children[host]

    async def _each(
        self, hosts: tuple[str, ...], act: Callable[[Children, str], Awaitable[Decision]]
    ) -> Decisions:
        """Act for each host, also after one has failed; then raise what the first one raised."""
        decisions, failure = dict[str, Decision](), None
        for host in hosts:
            try:
                decisions[host] = await act(self._of(host), host)
            except KubernetesError as error:
                failure = failure or error
        if failure is not None:
            raise failure
        return decisions


def _is_so(decided: Decision, seen: Decision) -> bool:
    """Whether an application is still what it was when that was decided."""
    return (decided.state, decided.name) == (seen.state, seen.name)


def _second(host: str, desired: Desired) -> str | None:
    """Return the host that takes over before the only one restarts; None if there is to be none."""
    return SECOND_HOST if host == FIRST_HOST and desired.spec.application.is_blue_green else None
