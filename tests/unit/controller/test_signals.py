"""What metrics say of a source besides its status: alerts depend on it."""

from dataclasses import replace
from typing import Any

import pytest

from balanced_source.api import Problem
from balanced_source.coordinator import CoordinatorState, HostPhase, HostRole, HostState
from balanced_source.reasons import Reason
from balanced_source_operator.contract.half import Losses
from balanced_source_operator.controller.application_facts import ApplicationState
from balanced_source_operator.controller.decisions import Decision
from balanced_source_operator.controller.hosts import combined
from balanced_source_operator.controller.signals import signals_of
from balanced_source_operator.metrics import OF_SIGNALS
from support.status_facts import facts
from unit.controller.test_ended_hosts import state as bounded_state

RUNS = Decision(state=ApplicationState.RUNNING, name="orders-1")
FAILS = replace(RUNS, name="orders-h1-1", failures=5)
DONE = Decision(state=ApplicationState.FINISHED, name="orders-h1-1", is_done=True)
SUSPENDED = Decision(state=ApplicationState.PAUSED, reason=Reason.SUSPENDED, message="suspended")


def signals(**changes: Any) -> dict[str, float | None]:
    return dict(signals_of(facts(**changes), desired_readers=3))


def on_two_hosts(second: Decision, *, heartbeats: tuple[float, float]) -> dict[str, float | None]:
    """Return the signals of a source whose host 1 is one epoch behind."""
    before: CoordinatorState[Any] = bounded_state()
    hosts = {}
    for (name, host), heartbeat in zip(before.hosts.items(), heartbeats, strict=True):
        assert host.report is not None
        report = replace(host.report, heartbeat=heartbeat, epoch=1 if name == "0" else 0)
        hosts[name] = replace(host, report=report, addressed_epoch=1)
    decisions = {"0": RUNS, "1": second}
    known = replace(before, hosts=hosts)
    return signals(state=known, hosts=decisions, application=combined(decisions, known))


def test_signals_have_the_names_of_their_metrics() -> None:
    found = signals(state=None)

    assert found.keys() == OF_SIGNALS.keys()
    assert found["desired_readers"] == 3
    assert found["epoch_lag"] is None, "unknown, which is not 0"
    assert found["skipped_records"] is None, "nor is this"
    assert found["report_timestamp_seconds"] is None


def test_a_driver_that_is_heard_is_not_silent_while_turns_fail() -> None:
    """Else its alert would fire, and its runbook says to delete the pod of a healthy driver."""
    taken_in = signals()["report_timestamp_seconds"]
    assert taken_in is not None

    assert signals(heard={"0": taken_in + 60})["report_timestamp_seconds"] == taken_in + 60
    assert signals(heard={"0": taken_in - 60})["report_timestamp_seconds"] == taken_in
    assert signals(heard={"9": taken_in + 60})["report_timestamp_seconds"] == taken_in


def test_lost_records_are_those_that_the_connector_counts() -> None:
    assert signals(losses=Losses(records=7))["skipped_records"] == 7
    assert signals(losses=Losses(records=None))["skipped_records"] is None, (
        "unknown, which is not 0"
    )
    assert signals(losses=Losses(gaps=2))["skipped_gaps"] == 2
    assert signals(state=None)["skipped_gaps"] is None


@pytest.mark.parametrize(
    "ended",
    [
        {"is_finished": True},
        {"application": Decision(state=ApplicationState.FINISHED, is_over=True)},
    ],
    ids=["bounded", "availableNow"],
)
def test_no_report_and_no_adoption_is_expected_when_everything_is_read(
    ended: dict[str, Any],
) -> None:
    found = signals(**ended)

    assert found["report_timestamp_seconds"] is None, "an old report would page people"
    assert found["epoch_lag"] is None


def test_a_suspended_source_is_not_behind_its_assignment() -> None:
    assert signals(application=SUSPENDED)["epoch_lag"] is None
    problem = Problem(reason=Reason.APPLICATION_FAILED, message="exit code 1")
    failed = Decision(state=ApplicationState.FAILED, problem=problem)
    assert signals(application=failed)["epoch_lag"] is not None, "it should run"


def test_a_host_that_is_done_counts_neither_for_reports_nor_for_adoption() -> None:
    found = on_two_hosts(DONE, heartbeats=(50.0, 10.0))
    assert (found["report_timestamp_seconds"], found["epoch_lag"]) == (50, 0)

    found = on_two_hosts(RUNS, heartbeats=(50.0, 10.0))
    assert (found["report_timestamp_seconds"], found["epoch_lag"]) == (10, 1)


def test_a_host_that_was_given_up_holds_back_no_epoch() -> None:
    before: CoordinatorState[Any] = facts().state or CoordinatorState()
    lost = HostState(role=HostRole.DRAINING, phase=HostPhase.LOST, incarnation=1)
    hosts = {**before.hosts, "1": lost}

    assert signals(state=replace(before, hosts=hosts))["epoch_lag"] == 0
    assert signals(state=replace(before, hosts={"1": lost}))["epoch_lag"] == before.epoch


def test_failures_are_those_of_the_worst_host_also_while_it_runs() -> None:
    """Its application runs for a moment between two failures."""
    assert on_two_hosts(FAILS, heartbeats=(50.0, 50.0))["application_failures"] == 5
    assert signals(application=replace(RUNS, failures=2))["application_failures"] == 2
