"""What a status is made from, of a source that is read."""

from typing import Any

from balanced_source.coordinator import CoordinatorState, HostPhase, HostState
from balanced_source_operator.controller.application_facts import ApplicationState
from balanced_source_operator.controller.decisions import Decision
from balanced_source_operator.controller.facts import Facts
from balanced_source_operator.spec import Status
from support.builders import make_report

RUNNING = Decision(state=ApplicationState.RUNNING, name="orders-1")


def state(*, epoch: int = 3, acknowledged: int = 3, **changes: Any) -> CoordinatorState[Any]:
    report = make_report(epoch=acknowledged, parallelism=2, lag=7)
    host = HostState(incarnation=1, phase=HostPhase.ACTIVE, report=report, addressed_epoch=2)
    owners = {("c", "t", p): p % 2 for p in range(5)}
    values = {"epoch": epoch, "parallelism": 2, "hosts": {"0": host}, "owners": owners, **changes}
    return CoordinatorState(**values)


def facts(**changes: Any) -> Facts:
    values: dict[str, Any] = {
        "generation": 4,
        "selector": "balancedsource.io/name=orders",
        "now": 1_767_225_600.0,
        "state": state(),
        "pending_splits": 0,
        "is_finished": False,
        "discovery": {},
        "problems": (),
        "application": RUNNING,
        "waiting_for": (),
        "is_silent": False,
        "is_overdue": False,
        "last_valid": "",
        "previous": {},
        **changes,
    }
    return Facts(**{"in_effect": values["generation"], **values})


def conditions(status: Status) -> dict[str, tuple[str, str]]:
    return {c.type: (c.status, c.reason) for c in status.conditions}
