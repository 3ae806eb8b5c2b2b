"""How long hosts have not run, and which of them changed settings do not wait for."""

import time
from collections.abc import Collection, Mapping
from typing import Any

from balanced_source.api import Problem, ProblemBoard
from balanced_source.coordinator import CoordinatorState, HostRole
from balanced_source.reasons import Reason
from balanced_source_operator.controller.broken_hosts import BrokenHosts
from balanced_source_operator.controller.rollback import TriedApplication
from balanced_source_operator.resources.identity import Identity
from balanced_source_operator.runtime.observed import Observed
from balanced_source_operator.runtime.reports import Reports


class HostHealth:
    """Of one source.

    Args:
        seconds: that a host may take to run with settings.
        source: whose hosts these are.
        observed: has their reports.
        problems: where hosts are named that nothing waits for.
    """

    def __init__(
        self, seconds: float, source: Identity, observed: Observed, problems: ProblemBoard
    ) -> None:
        self._seconds = seconds
        self._source = source
        self._observed = observed
        self._problems = problems
        self._reports: dict[str, Reports] = {}
        self._since: dict[str, float] = {}
        self._named = frozenset[str]()
        self.skipped = frozenset[str]()

    def begin(self) -> None:
        """Give all hosts the whole time again: other settings are in effect."""
        self._since, self.skipped = {}, frozenset()

    def look(
        self,
        known: BrokenHosts,
        names: Collection[str],
        seen: Mapping[str, TriedApplication],
        state: CoordinatorState[Any],
        *,
        trial: float,
    ) -> BrokenHosts:
        """Return which hosts are broken; those that nothing waits for are in `skipped` then.

        Args:
            known: before.
            names: hosts that the spec asks for.
            seen: applications, by host.
            state: of the coordinator.
            trial: seconds after which settings on trial are given up for a host; 0 if none are on
                trial.
        """
        now = time.monotonic()
        down = [name for name in names if _is_down(name, seen.get(name), state)]
        self._since = {name: self._since.get(name, now) for name in down}
        # A driver that has registered may work at a large first micro-batch.
        waited = {n: now - self._since[n] for n in down if n not in seen or not seen[n].begins}
        # A rollback decides first whether it is the settings that break a host.
        late = {n for n, seconds in waited.items() if seconds >= self._seconds + trial}
        after = known.looked(down, late=late)
        self.skipped = frozenset(
            name
            for name, seconds in waited.items()
            if seconds >= self._seconds and not self.is_witness(after, name)
        )
        self._tell(after)
        return after

    def is_witness(self, known: BrokenHosts, host: str) -> bool:
        """Return whether a host that does not run tells that the settings in effect do not work.

        It does not if it was broken before them, or has never run.
        """
        return host not in known.excused and self._has_run(host)

    def _has_run(self, host: str) -> bool:
        # The report outlives its application, and stays when the host is removed for a restart.
        reports = self._reports.setdefault(
            host, Reports(self._source.on_host(host), self._observed)
        )
        report = reports.newest()
        return report is not None and report.epoch > 0

    def _tell(self, known: BrokenHosts) -> None:
        excused = self.skipped & known.excused
        for host in self._named - excused:
            self._problems.clear(("skipped host", host))
        for host in excused:
            self._problems.set(("skipped host", host), _problem(host))
        self._named = excused


def _is_down(name: str, seen: TriedApplication | None, state: CoordinatorState[Any]) -> bool:
    """Whether a host does not run.

    One that hands over before it restarts does not count: its time begins when it should be back.
    """
    host = state.hosts.get(name)
    is_away = host is None or host.role is HostRole.LEAVING
    return not is_away and (seen is None or not seen.is_healthy)


def _problem(host: str) -> Problem:
    message = (
        f"Host {host} did not run before its settings changed, and does not run with the new ones."
        " The other hosts restart without it. See its SparkApplication, and the pod of its driver"
    )
    return Problem(reason=Reason.READERS_MISSING, message=message, scope=host)
