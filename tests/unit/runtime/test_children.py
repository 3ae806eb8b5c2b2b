"""What belongs to one of several hosts of a source."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from balanced_source.api import Problem, ProblemBoard
from balanced_source.coordinator import HostState
from balanced_source.documents.report import HostReport
from balanced_source.lifecycles import HostPhase
from balanced_source.reasons import Reason
from balanced_source_operator.resources.identity import Identity
from balanced_source_operator.resources.kinds import (
    DRAIN_ANNOTATION,
    INCARNATION_ANNOTATION,
    KUBEFLOW_APPLICATION,
)
from balanced_source_operator.runtime.children import Children, _has_work
from balanced_source_operator.runtime.former_application import FormerApplication
from support.builders import spark_application

MISSING = Reason.OWNER_REFERENCE_MISSING


def children(
    host: str, *applications: dict[str, Any], problems: ProblemBoard | None = None
) -> Children:
    observed: Any = SimpleNamespace(by_host={host: [*applications]})
    environment: Any = SimpleNamespace(api=None)
    events: Any = None
    identity = Identity(namespace="shop", name="orders", uid="uid", host=host)
    return Children(environment, identity, observed, events, problems or ProblemBoard())


def coordinator(**changes: Any) -> Any:
    """One whose first host has registered with its third driver, and has adopted epoch 5."""
    host: dict[str, Any] = {
        "incarnation": 3,
        "phase": HostPhase.ACTIVE,
        "addressed_epoch": 4,
        "report": HostReport(incarnation=3, epoch=5),
    }
    return SimpleNamespace(state=SimpleNamespace(hosts={"0": HostState(**{**host, **changes})}))


def started_after(incarnation: int, name: str = "orders-1") -> dict[str, Any]:
    return spark_application(name, annotations={INCARNATION_ANNOTATION: str(incarnation)})


@pytest.mark.parametrize(
    ("applications", "has_adopted"),
    [
        ([started_after(2)], True),
        ([started_after(3)], False),
        ([started_after(2), started_after(3, "orders-2")], False),
        ([started_after(3), started_after(2, "orders-2")], False),
    ],
)
def test_a_driver_has_adopted_if_it_is_of_every_present_application(
    applications: list[dict[str, Any]], *, has_adopted: bool
) -> None:
    """An application that is about to be replaced may still be there."""
    assert children("0", *applications).has_adopted(coordinator()) is has_adopted


def test_a_driver_that_has_completed_no_micro_batch_has_not_adopted() -> None:
    of_host = children("0", started_after(2))

    assert not of_host.has_adopted(coordinator(report=HostReport(incarnation=3, epoch=3)))
    assert not of_host.has_adopted(coordinator(phase=HostPhase.RECOVERING))
    assert not children("1", started_after(2)).has_adopted(coordinator()), "unknown host"


def test_a_host_that_is_gone_leaves_the_problems_of_the_others() -> None:
    problems = ProblemBoard()
    keys = (MISSING, (MISSING, "1"))
    for key in keys:
        problems.raise_(key, Problem(reason=MISSING, message=str(key)))

    children("1", problems=problems).forget()
    assert [problems.get(key) is None for key in keys] == [False, True]
    children("0", problems=problems).forget()
    assert [problems.get(key) is None for key in keys] == [True, True]


def test_a_drain_attempt_gets_the_settings_of_the_last_application_that_has_registered() -> None:
    """Beside it there may be an attempt before it, and one that has never registered."""
    drain = started_after(1, "orders-9")
    drain["metadata"]["annotations"][DRAIN_ANNOTATION] = "true"
    worked, never = started_after(2), started_after(3, "orders-2")
    for application in (drain, worked, never):
        application["kind"] = KUBEFLOW_APPLICATION.kind
        application["apiVersion"] = KUBEFLOW_APPLICATION.api_version
        application["spec"] = {"of": application["metadata"]["name"]}
    former, host = FormerApplication(), HostState(incarnation=3)

    former.note([drain, worked, never], None)
    assert former.drain_attempt(drain["metadata"]) is None, "no host is known"
    former.note([drain, never, worked], host)
    made = former.drain_attempt(drain["metadata"])

    assert made is not None
    assert made[1]["spec"]["of"] == "orders-1"


@pytest.mark.parametrize(
    ("epoch", "look_ahead", "undiscovered", "owners", "has_work"),
    [
        (0, 2, (), {}, False),
        (1, 2, (), {}, True),
        (1, 2, ("files",), {}, False),
        (1, 0, (), {}, False),
        (1, 0, (), {("c", "t", 0): 0}, True),
    ],
    ids=["nothing published", "asked for", "nothing listed", "no split", "splits"],
)
def test_there_is_work_once_splits_or_answers_are_published(
    epoch: int,
    look_ahead: int,
    undiscovered: Sequence[str],
    owners: dict[Any, int],
    *,
    has_work: bool,
) -> None:
    """The first application starts then."""
    source: Any = SimpleNamespace(
        source=SimpleNamespace(look_ahead=look_ahead),
        enumerator=SimpleNamespace(undiscovered=lambda: frozenset(undiscovered)),
        state=SimpleNamespace(epoch=epoch, owners=owners),
    )

    assert _has_work(source) is has_work
