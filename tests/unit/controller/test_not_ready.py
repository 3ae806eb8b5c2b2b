"""Why a source that is not read, or that may not be read, is not Ready."""

import pytest

from balanced_source.api import Problem
from balanced_source.coordinator import HostPhase, HostState
from balanced_source_operator.controller.application_facts import ApplicationState
from balanced_source_operator.controller.conditions import status_of
from balanced_source_operator.controller.decisions import Decision
from support.builders import make_report
from support.status_facts import conditions, facts, state


def test_a_query_that_begins_no_micro_batch_is_not_ready() -> None:
    """Its driver reports on: the planning process lives when the JVM stands still."""
    stall = Problem(reason="QueryStalled", message="Spark has begun no micro-batch for 300 s")
    host = HostState(
        incarnation=1,
        phase=HostPhase.ACTIVE,
        report=make_report(epoch=3, parallelism=2, lag=7, problems=(stall,)),
        addressed_epoch=2,
    )
    status = status_of(facts(state=state(hosts={"0": host})))

    assert conditions(status)["Ready"] == ("False", "QueryStalled")
    assert conditions(status)["Degraded"] == ("True", "QueryStalled")
    assert "DataLoss" not in conditions(status)
    assert status.message == stall.message

    worse = Problem(reason="HostLost", message="host 1 is lost")
    found = conditions(status_of(facts(state=state(hosts={"0": host}), problems=(worse,))))
    assert found["Degraded"] == ("True", "HostLost")
    assert found["Ready"] == ("False", "QueryStalled"), "this is why nothing is read"


def test_a_query_whose_driver_is_silent_may_be_reading() -> None:
    silent = Problem(reason="DriverSilent", message="the driver has not reported for 60 s")
    refused = Problem(reason="Refused", message="the Role is refused")
    status = status_of(facts(is_silent=True, problems=(refused, silent)))

    assert conditions(status)["Ready"] == ("Unknown", "DriverSilent")
    assert status.message == silent.message


@pytest.mark.parametrize(
    ("message", "words"),
    [("its node is away", "its node is away"), ("", "no reader has adopted an assignment yet")],
)
def test_a_source_that_is_not_read_says_what_is_known_of_its_application(
    message: str, words: str
) -> None:
    application = Decision(state=ApplicationState.DEGRADED, name="orders-1", message=message)
    status = status_of(facts(application=application))

    assert conditions(status)["Ready"] == ("False", "NotReading")
    assert status.message == words
