"""How often applications of a host have failed in a row, with the same settings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from balanced_source.api import Problem
from balanced_source.reasons import Reason
from balanced_source_operator.controller.application_facts import (
    STABLE_AFTER,
    ApplicationState,
    attempts_of,
    failures_before,
    is_young,
)
from balanced_source_operator.controller.decisions import Decision
from balanced_source_operator.controller.diagnosis import NO_CAUSE
from balanced_source_operator.kube.port import Manifest

SHOWN_FROM: Final = 2
"""Failures in a row from which an application that runs again is not taken for healthy: one crash
happens, and the next start mends it."""

_STARTS_OR_RUNS: Final = frozenset({ApplicationState.PENDING, ApplicationState.RUNNING})


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureRow:
    """What is known from earlier looks.

    Attributes:
        count: failures in a row.
        settings: that the applications were made from; empty before the first look.
        is_over: whether the limit is reached, so that only the user starts another application.
        settled: uid → number of the attempt that was last seen to have run for `STABLE_AFTER`.
            Kubeflow's operator counts the attempts of an application over months.
        last: the newest failure; None if no look has seen one.
        failed: uid and number of the attempt whose failure that is.
    """

    count: int = 0
    settings: str = ""
    is_over: bool = False
    settled: Mapping[str, int] = field(default_factory=dict)
    last: Problem | None = None
    failed: tuple[str, int] | None = None

    def explained(self, decision: Decision, applications: Sequence[Manifest]) -> Decision:
        """Give a failure whose traces are gone the cause that an earlier look has seen.

        Kubeflow's operator deletes the pod of a failed driver, and its own message, before it
        starts the next one.
        """
        problem = decision.problem
        is_lost = problem is not None and NO_CAUSE in problem.message
        if not is_lost or self.last is None or self.failed != _newest_attempt(applications):
            return decision
        return replace(decision, problem=self.last)

    def looked(
        self, decision: Decision, applications: Sequence[Manifest], *, settings: str, now: float
    ) -> "FailureRow":
        """Return what is known after a further look.

        A row ends with an application that has run for `STABLE_AFTER`: one that fails every few
        minutes would look healthy in between. Other settings begin a new row. So does a user who
        deletes an application that has reached the limit: it is started as often again.

        Args:
            decision: about the application.
            applications: of the host.
            settings: that are in effect; any text that differs when they do.
            now: seconds since the epoch.
        """
        is_new = settings != self.settings or (self.is_over and not applications)
        before = 0 if is_new else self.count
        if not self.settings:
            # The operator before this one has noted its failures with the application.
            before = max(map(failures_before, applications), default=0)
        problem = decision.problem
        is_stable = decision.state is ApplicationState.RUNNING and not any(
            is_young(application, now) for application in applications
        )
        count = 0 if is_stable else max(self._failures(decision, applications), before)
        last, failed = (None, None) if is_new else (self.last, self.failed)
        if decision.failures:
            last, failed = problem, _newest_attempt(applications)
        return FailureRow(
            count=count,
            settings=settings,
            is_over=problem is not None and problem.reason == Reason.RESTART_LIMIT_REACHED,
            settled=self._settled(applications, is_stable=is_stable),
            last=last if count else None,
            failed=failed if count else None,
        )

    def relapse(self, decision: Decision) -> Problem | None:
        """Return what is wrong with an application that starts or runs after failures in a row.

        Without this, the condition of one that fails every few minutes would go and come back, and
        an alert that waits would never fire. None if it has failed less than `SHOWN_FROM` times.
        """
        if self.count < SHOWN_FROM or decision.state not in _STARTS_OR_RUNS:
            return None
        last = self.last or Problem(
            reason=Reason.APPLICATION_FAILED, message="see the events of this BalancedSource"
        )
        message = (
            f"SparkApplication {decision.name} is started again after {self.count} failures in a"
            f" row. This stays until it has run for {STABLE_AFTER / 60:.0f} minutes. The last"
            f" failure: {last.message}"
        )
        return replace(last, message=message)

    def _failures(self, decision: Decision, applications: Sequence[Manifest]) -> int:
        """Failures in a row, as far as the applications tell; those before a long run are over."""
        for application in applications:
            settled = self.settled.get(_uid(application))
            if settled is not None and decision.failures:
                # The attempt that ran for long has failed, too.
                return max(1, attempts_of(application) - settled + 1)
        return decision.failures

    def _settled(self, applications: Sequence[Manifest], *, is_stable: bool) -> Mapping[str, int]:
        attempts = {_uid(one): attempts_of(one) for one in applications}
        if is_stable:
            return attempts
        # Apache's operator begins to count again after a long run.
        return {
            uid: min(self.settled[uid], number)
            for uid, number in attempts.items()
            if uid in self.settled
        }


def _newest_attempt(applications: Sequence[Manifest]) -> tuple[str, int] | None:
    if not applications:
        return None
    return _uid(applications[0]), attempts_of(applications[0])


def _uid(application: Manifest) -> str:
    return str(application["metadata"].get("uid", ""))
