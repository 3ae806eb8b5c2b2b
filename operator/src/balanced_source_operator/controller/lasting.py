"""What lasts too long about the applications of a host, which a single look does not tell.

An application that nothing happens to is made again, and what is left of a former one is waited
for. Each look alone finds that all is on its way.
"""

from dataclasses import dataclass, replace
from typing import Final

from balanced_source.api import Problem
from balanced_source.names import capitalised
from balanced_source.reasons import Reason
from balanced_source_operator.controller.application_facts import ApplicationState
from balanced_source_operator.controller.decisions import Decision

_UNDECIDED: Final = frozenset(
    {ApplicationState.NONE, ApplicationState.PENDING, ApplicationState.STOPPING}
)


_OF_PODS: Final = (
    "If its node does not answer, delete the pod by kubectl delete pod --force once that machine is"
    " off"
)
_OF_APPLICATIONS: Final = (
    "Its Spark operator has to release it: check that the Spark operator runs, and the node of its"
    " driver pod. If that Spark operator will not run again, remove the finalizers of the"
    " SparkApplication once none of its pods runs"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lasting:
    """What is known from earlier looks.

    Attributes:
        stuck: problem of an application that was made again; None if the next one has got further.
        waits_for: what is left of a former start; empty for nothing.
        since: when it was waited for first; seconds.
    """

    stuck: Problem | None = None
    waits_for: str = ""
    since: float = 0.0

    def looked(self, decision: Decision, *, has_driver: bool, now: float) -> "Lasting":
        """Return what is known after a further look.

        Args:
            decision: about the application.
            has_driver: whether a driver pod lives.
            now: seconds.
        """
        stays = decision.state in _UNDECIDED and not has_driver
        stuck = self.stuck if stays else None
        if decision.is_stuck:
            stuck = decision.problem
        since = self.since if decision.waits_for == self.waits_for else now
        return Lasting(stuck=stuck, waits_for=decision.waits_for, since=since)

    def apply(self, decision: Decision, *, patience: float, now: float) -> Decision:
        """Return the decision with the problem that lasts, unless it has a problem already."""
        if decision.problem is not None:
            return decision
        if not self.waits_for:
            return replace(decision, problem=self.stuck)
        left = self.since + patience - now
        if left > 0:
            due = (seconds for seconds in (decision.look_again, left) if seconds is not None)
            return replace(decision, look_again=min(due), problem=self.stuck)
        message = (
            f"{capitalised(self.waits_for)} is still there {patience:.0f} s after it was to end. No"
            f" other driver starts before: two would write twice. {_advice(self.waits_for)}"
        )
        return replace(
            decision, problem=Problem(reason=Reason.OLD_APPLICATION_REMAINS, message=message)
        )


def _advice(left: str) -> str:
    """Return what a user does about what is left of a former start."""
    return _OF_APPLICATIONS if left.startswith("SparkApplication ") else _OF_PODS
