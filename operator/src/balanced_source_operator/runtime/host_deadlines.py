"""How long hosts that have not registered are waited for before the others read their share."""

import time
from collections.abc import Iterator
from typing import Any

from balanced_source.api import Problem, ProblemBoard
from balanced_source.coordinator import CoordinatorState, HostPhase, HostRole
from balanced_source.reasons import Reason
from balanced_source_operator.runtime.deadline import Deadline


class HostDeadlines:
    """Of one source.

    Args:
        seconds: that a host may take.
        problems: where hosts are named that take longer.
    """

    def __init__(self, seconds: float, problems: ProblemBoard) -> None:
        self._seconds = seconds
        self._problems = problems
        self._deadlines: dict[str, Deadline] = {}

    def overdue(self, state: CoordinatorState[Any], *, is_suspended: bool = False) -> list[str]:
        """Return the hosts that have taken too long, and that have readers.

        What is wrong is on the board. No host can come while the source is suspended.
        """
        missing = [] if is_suspended else list(_missing(state))
        # A host that has come and goes again gets the whole time once more.
        for host in self._deadlines.keys() - set(missing):
            del self._deadlines[host]
            self._problems.clear(("host", host))
        late = [host for host in missing if self._is_over(host)]
        for host in late:
            self._problems.set(("host", host), self._problem(host))
        return [host for host in late if state.hosts[host].role is HostRole.MEMBER]

    def _is_over(self, host: str) -> bool:
        deadline = self._deadlines.setdefault(host, Deadline(self._seconds, clock=time.monotonic))
        deadline.note(waits=True)
        return deadline.is_over()

    def _problem(self, host: str) -> Problem:
        message = (
            f"Host {host} has not registered for {self._seconds:.0f} s. The other hosts read its"
            " share until it does: see the log of the driver's pod of that host"
        )
        return Problem(reason=Reason.READERS_MISSING, message=message, scope=host)


def _missing(state: CoordinatorState[Any]) -> Iterator[str]:
    """Hosts that have not come although others have."""
    able = {HostPhase.ACTIVE}
    # At a first start all wait for the first host. After a loss the gate waits as long as it takes.
    if state.is_first_life:
        able.add(HostPhase.RECOVERING)
    # Until another host has come, no one could read the share.
    if any(host.phase in able for host in state.hosts.values()):
        for name, host in state.hosts.items():
            if host.phase is HostPhase.EXPECTED and not host.is_on_its_way_out:
                yield name
