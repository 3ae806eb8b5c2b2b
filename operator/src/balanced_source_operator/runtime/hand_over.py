"""Which host hands its splits over before its application restarts with changed settings."""

import time
from collections.abc import Callable, Collection, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, Final, NamedTuple

from balanced_source.coordinator import CoordinatorState, HostPhase, HostRole, HostState
from balanced_source.documents.storage import FIRST_HOST
from balanced_source_operator.controller.restarts import (
    FIRST_MICRO_BATCH,
    OTHER_HOSTS,
    SECOND_APPLICATION,
    Hold,
    after_hosts,
)


class Roll(NamedTuple):
    """How the hosts differ from those that the spec asks for, while an application restarts.

    Attributes:
        away: host that is to have no splits now; None for none.
        second: host that is to be there as well, so that another one can hand its splits over; None
            for none.
    """

    away: str | None = None
    second: str | None = None

    def hosts(
        self,
        asked: tuple[str, ...],
        known: Mapping[str, HostState],
        silent: AbstractSet[str] = frozenset(),
    ) -> tuple[str, ...]:
        """Return the hosts that there are to be now.

        No host that reads leaves before a host that stays can take over its splits: also where the
        spec asks for fewer hosts, or where the operator has restarted and forgotten the second one.

        Args:
            asked: hosts of the spec.
            known: hosts of the coordinator.
            silent: those of them that have not reported for long: they take over nothing.
        """
        second = () if self.second is None else (self.second,)
        wanted = tuple(n for n in dict.fromkeys((*asked, *second)) if n != self.away)
        heard = {n: h for n, h in known.items() if n not in silent}
        if any(n in heard and heard[n].phase is HostPhase.ACTIVE for n in wanted):
            return wanted
        reading = (n for n, h in heard.items() if _is_reading(h))
        return tuple(dict.fromkeys((*wanted, *reading)))


STEADY: Final = Roll()
"""No application restarts: the hosts are those of the spec."""


class HandOver:
    """Of one source: hosts restart in turn, so at most one hands over at a time.

    The host leaves as if it were not wanted any more. When it has let go of its splits its
    application is stopped, and when that is gone the host is wanted again. A host that is the only
    one may wait for a second one first, which is there until it reads again. Nothing of this is
    stored: the next operator begins again.

    Args:
        patience: seconds after which a host that has not let go restarts all the same. It may be
            what hangs.
        wake: called when the hosts are to be others.
    """

    def __init__(self, patience: float, wake: Callable[[], None]) -> None:
        self._patience = patience
        self._wake = wake
        self._since = 0.0
        self._asking: set[str] = set()
        self._fresh: dict[str, float] = {}
        self._given_up: str | None = None
        self.roll = STEADY

    @property
    def host(self) -> str | None:
        """The host that hands over; None if there is none."""
        return self.roll.away

    def note_turn(self) -> None:
        """Begin a turn, in which each host that is to restart asks."""
        self._asking = set()

    def begin(
        self,
        host: str,
        state: CoordinatorState[Any],
        *,
        others: Collection[str],
        absent: AbstractSet[str] = frozenset(),
        second: str | None = None,
    ) -> Hold | None:
        """Return which hand-over a restart waits for; None if the host restarts at once.

        It restarts at once if no other host could read its splits, or if it has none. Before its
        first micro-batch has ended it cannot let go of any.

        Args:
            host: that is to restart.
            state: of the coordinator.
            others: hosts beside it that the spec asks for. One that is to leave takes over nothing:
                both would wait for each other.
            absent: hosts that have not reported for long, or have ended: they neither hand over nor
                take over.
            second: host that is started to read its splits; None if there is to be none.
        """
        self._asking.add(host)
        # A host that did not let go in time may hang: it restarts, and is not waited for a second
        # time.
        if host == self._given_up or host in absent or not _answers(state.hosts.get(host)):
            return None
        able = set(others) - absent
        if second is None and not state.hosts[host].acknowledged_epoch:
            return self._first_micro_batch(host, state, able)
        # Two that replaced each other would both wait without end.
        if self.host not in (None, host):
            return after_hosts([str(self.host)], broken=())
        if not _has_successor(state, able, second):
            if second is None:
                return None
            # However long it takes: the second application is there so that reading never stops.
            self._set(Roll(second=second))
            return SECOND_APPLICATION
        if self.host != host:
            self._since = time.monotonic()
            self._set(Roll(away=host, second=second))
        if time.monotonic() - self._since >= self._patience:
            self._given_up = host
            self.roll = Roll(second=second)
            return None
        return OTHER_HOSTS if second is None else SECOND_APPLICATION

    def _first_micro_batch(
        self, host: str, state: CoordinatorState[Any], others: Collection[str]
    ) -> Hold | None:
        if not _gets_splits(state, host) or not _has_successor(state, others, None):
            return None
        now = time.monotonic()
        # Not longer than for a hand-over: it may be what hangs.
        if now - self._fresh.setdefault(host, now) >= self._patience:
            return None
        return FIRST_MICRO_BATCH

    def note_end(self, *, known: AbstractSet[str], present: AbstractSet[str]) -> None:
        """End a turn: a host whose application is gone, or that restarts no more, is wanted again.

        Args:
            known: hosts that the coordinator knows.
            present: hosts that have an application.
        """
        # It has restarted, or need not any more: its next restart gets the whole patience again.
        if self._given_up not in self._asking:
            self._given_up = None
        self._fresh = {host: since for host, since in self._fresh.items() if host in self._asking}
        # It has let go and left the state; wanted before its application is gone, it would get
        # splits that the stopping driver cannot read.
        is_stopping = self.host in present and self.host not in known
        if not is_stopping and (self.host or FIRST_HOST) not in self._asking:
            self._set(STEADY)

    def _set(self, roll: Roll) -> None:
        if roll != self.roll:
            self.roll = roll
            self._wake()


def _gets_splits(state: CoordinatorState[Any], host: str) -> bool:
    """Whether a host has splits, or others let go of some that it may get."""
    is_owner = not frozenset(state.subtasks_of(host)).isdisjoint(state.owners.values())
    return is_owner or any(revocation.host != host for revocation in state.revoking.values())


def _is_reading(host: HostState) -> bool:
    """Whether a host answers and was not given up."""
    return host.phase is HostPhase.ACTIVE and host.role is not HostRole.DRAINING


def _answers(host: HostState | None) -> bool:
    """Whether a host has splits to hand over, and can."""
    return (
        host is not None
        and host.phase is HostPhase.ACTIVE
        and host.role in (HostRole.MEMBER, HostRole.LEAVING)
    )


def _has_successor(
    state: CoordinatorState[Any], others: Collection[str], second: str | None
) -> bool:
    """Whether another host reads; one that was started for that must have shown that it works."""
    return any(
        state.hosts[name].phase is HostPhase.ACTIVE
        and (name in others or (name == second and state.hosts[name].acknowledged_epoch > 0))
        for name in state.members
    )
