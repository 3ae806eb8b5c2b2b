"""What a status says while the operator that writes it has not heard everything yet."""

from typing import Any

from balanced_source.api import Problem
from balanced_source.coordinator import CoordinatorState
from balanced_source_operator.controller.conditions import status_of
from balanced_source_operator.spec import Status
from support.status_facts import facts


def degraded(status: Status) -> tuple[str, str, str]:
    found = next(c for c in status.conditions if c.type == "Degraded")
    return found.status, found.reason, found.message


def stored(status: Status) -> dict[str, Any]:
    return status.model_dump(mode="json", by_alias=True)


UNREACHABLE = Problem(reason="ClusterUnreachable", message="cluster main does not answer")


def test_an_operator_that_has_not_looked_yet_does_not_say_that_all_is_well() -> None:
    before = stored(status_of(facts(problems=(UNREACHABLE,))))

    starts = status_of(facts(previous=before, is_first_look=True))
    knows = status_of(facts(previous=before))

    assert degraded(starts) == ("True", UNREACHABLE.reason, UNREACHABLE.message)
    assert starts.message == stored(starts)["message"] == before["message"]
    assert degraded(knows) == ("False", "AsExpected", "nothing is wrong")


def test_what_was_wrong_with_another_spec_is_over() -> None:
    before = stored(status_of(facts(problems=(UNREACHABLE,), generation=3)))

    status, _, message = degraded(status_of(facts(previous=before, is_first_look=True)))

    assert (status, message[:34]) == ("False", "nothing has been found wrong so fa")


def test_a_new_operator_leaves_the_status_of_a_healthy_source_as_it_is() -> None:
    before = stored(status_of(facts()))

    assert stored(status_of(facts(previous=before, is_first_look=True))) == before


def test_what_discovery_waits_for_is_named() -> None:
    new = facts(
        state=CoordinatorState(), undiscovered=("east", "main"), is_first_look=True, previous={}
    )

    status = status_of(new)

    assert status.message == "looking for the splits of the source: waiting for east, main"
    assert degraded(status)[2].endswith("not everything that the source reads has answered yet")
