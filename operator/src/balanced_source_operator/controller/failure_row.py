"""How often applications of a host have failed in a row, with the same settings."""

from collections.abc import Sequence
from dataclasses import dataclass

from balanced_source.reasons import Reason
from balanced_source_operator.controller.application_facts import (
    ApplicationState,
    failures_before,
    is_young,
)
from balanced_source_operator.controller.decisions import Decision
from balanced_source_operator.kube.port import Manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureRow:
    """What is known from earlier looks.

    Attributes:
        count: failures in a row.
        settings: that the applications were made from; empty before the first look.
        is_over: whether the limit is reached, so that only the user starts another application.
    """

    count: int = 0
    settings: str = ""
    is_over: bool = False

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
        return FailureRow(
            count=0 if is_stable else max(decision.failures, before),
            settings=settings,
            is_over=problem is not None and problem.reason == Reason.RESTART_LIMIT_REACHED,
        )
