"""Which host hands its splits over before its application restarts with changed settings."""

import time
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import Any

from balanced_source.coordinator import CoordinatorState, HostPhase, HostRole


class HandOver:
    """Of one source: hosts restart in turn, so at most one hands over at a time.

    The host leaves as if it were not wanted any more. When it has let go of its splits its
    application is stopped, and when that is gone the host is wanted again. Nothing of this is
    stored: the next operator begins again.

    Args:
        patience: seconds after which a host that has not let go restarts all the same. It may be
            what hangs.
        wake: called when another host is to be away.
    """

    def __init__(self, patience: float, wake: Callable[[], None]) -> None:
        self._patience = patience
        self._wake = wake
        self._since = 0.0
        self._asking: set[str] = set()
        self._given_up: str | None = None
        self.host: str | None = None

    def note_turn(self) -> None:
        """Begin a turn, in which each host that is to restart asks."""
        self._asking = set()

    def begin(self, host: str, state: CoordinatorState[Any]) -> bool:
        """Return whether a host hands over before it restarts.

        It does not if no other host could read its splits.
        """
        self._asking.add(host)
        # A host that did not let go in time may hang: it restarts, and is not waited for a second
        # time.
        if host == self._given_up or not _can(host, state):
            return False
        if self.host != host:
            self.host, self._since = host, time.monotonic()
            self._wake()
        if time.monotonic() - self._since >= self._patience:
            self.host, self._given_up = None, host
        return self.host == host

    def note_end(self, *, known: AbstractSet[str], present: AbstractSet[str]) -> None:
        """End a turn: a host whose application is gone, or that restarts no more, is wanted again.

        Args:
            known: hosts that the coordinator knows.
            present: hosts that have an application.
        """
        # It has restarted, or need not any more: its next restart gets the whole patience again.
        if self._given_up not in self._asking:
            self._given_up = None
        # It has let go and left the state; wanted before its application is gone, it would get
        # splits that the stopping driver cannot read.
        is_stopping = self.host in present and self.host not in known
        if self.host is not None and self.host not in self._asking and not is_stopping:
            self.host = None
            self._wake()


def _can(host: str, state: CoordinatorState[Any]) -> bool:
    """Whether a host answers, and another one is there to take over."""
    known = state.hosts.get(host)
    if (
        known is None
        or known.phase is not HostPhase.ACTIVE
        or known.role not in (HostRole.MEMBER, HostRole.LEAVING)
    ):
        return False
    return any(
        name != host and state.hosts[name].phase is HostPhase.ACTIVE for name in state.members
    )
