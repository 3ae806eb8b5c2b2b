"""Decides when an application must not be started again because another query reads its source.

A query that was fenced, or refused, ends with an error, and its application is submitted again.
None of these attempts can read while the other query reports. So the application is not started
until that query has ended; it is deleted if the Spark operator would submit it again by itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from balanced_source.api import Problem
from balanced_source.documents.report import HostReport
from balanced_source.reasons import Reason
from balanced_source_operator.controller.application_facts import ApplicationState
from balanced_source_operator.controller.decisions import Decision
from balanced_source_operator.controller.liveness import ALIVE
from balanced_source_operator.kube.port import Manifest

SETTLED: Final = 15.0
"""Seconds after our last driver was seen: reports that arrive later are not its own."""

_RESUBMITTED: Final = frozenset({"FAILING", "PENDING_RERUN"})
_FAILED: Final = frozenset({*_RESUBMITTED, "FAILED"})
_LOOK_AGAIN: Final = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """What is known of the query that reads a source, as far as it is not our own.

    Attributes:
        alone_since: when our last living driver pod was seen; None before the first look.
        seen: incarnation, instance and sequence of the newest report.
        reported_at: when a report of another query was seen last; None if none was.
        is_held: whether our application failed meanwhile, so that it is not started now.
    """

    alone_since: float | None = None
    seen: tuple[int, str, int] | None = None
    reported_at: float | None = None
    is_held: bool = False

    def looked(self, report: HostReport | None, *, has_driver: bool, now: float) -> "Holding":
        """Return what is known after a further look.

        Args:
            report: newest of the source.
            has_driver: whether a driver pod of ours lives.
            now: seconds.
        """
        seen = (
            (report.incarnation, report.instance, report.sequence) if report is not None else None
        )
        # While a driver pod of ours lives, the reports may be its own.
        if has_driver or self.alone_since is None:
            return Holding(alone_since=now, seen=seen)
        if report is not None and not report.instance:  # whoever it was has given up the claim
            return replace(self, seen=seen, reported_at=None, is_held=False)
        is_others = seen is not None and seen != self.seen and now - self.alone_since >= SETTLED
        reported_at = now if is_others else self.reported_at
        is_alive = reported_at is not None and now - reported_at < ALIVE
        return replace(
            self,
            seen=seen,
            reported_at=reported_at if is_alive else None,
            is_held=self.is_held and is_alive,
        )

    def apply(
        self, decision: Decision, applications: Sequence[Manifest], report: HostReport | None
    ) -> tuple["Holding", Decision]:
        """Return the decision, unless another query reads: then the application is not started."""
        present = [a for a in applications if not a["metadata"].get("deletionTimestamp")]
        has_failed = any(_word(a) in _FAILED for a in present)
        if self.reported_at is None or report is None or not (has_failed or self.is_held):
            return self, decision
        where = report.instance.partition(" machine=")[0].replace(" ", ", ")
        message = (
            f"another query reads this source ({where} on {report.location}, incarnation"
            f" {report.incarnation}): the application is not started until that query has ended."
            " Stop that query, or give it a BalancedSource of its own"
        )
        held = Decision(
            state=ApplicationState.FAILED,
            name=decision.name,
            # The Spark operator would submit it again, only to be refused again.
            delete=tuple(a for a in present if _word(a) in _RESUBMITTED),
            reason=Reason.SOURCE_IN_USE,
            message=message,
            problem=Problem(reason=Reason.SOURCE_IN_USE, message=message),
            failures=decision.failures,
            look_again=_LOOK_AGAIN,
        )
        return replace(self, is_held=True), held


def _word(application: Manifest) -> str:
    return str(application.get("status", {}).get("applicationState", {}).get("state", ""))
