"""A driver with the same report for three heartbeats is silent, by the operator's clock."""

from dataclasses import replace
from typing import Any

import pytest

from balanced_source.coordinator import CoordinatorState, HostRole, HostState
from balanced_source.documents.report import (
    MILLIS_BEHIND,
    HostReport,
    millis_behind,
    records_behind,
    seconds_behind,
)
from balanced_source_operator.controller.liveness import ALIVE, Liveness, Pulses, newest_report
from support.builders import driver_pod, make_report, spark_application

REPORT = make_report(incarnation=2, sequence=5)


def test_a_driver_is_silent_when_its_report_does_not_change() -> None:
    seen = Liveness().looked(REPORT, now=100.0)
    assert not seen.is_silent(now=100.0 + ALIVE - 1)
    assert seen.pause(now=110.0) == ALIVE - 10

    again = seen.looked(REPORT, now=120.0)
    assert again.is_silent(now=100.0 + ALIVE)
    assert again.pause(now=100.0 + ALIVE) is None


def test_the_driver_that_has_been_quiet_longest_falls_silent_first() -> None:
    pulses = Pulses()
    assert pulses.pause(now=100.0) is None
    pulses.look("0", REPORT, now=100.0)
    pulses.look("1", REPORT, now=110.0)

    assert pulses.pause(now=110.0) == ALIVE - 10
    assert pulses.pause(now=100.0 + ALIVE) == 10.0, "the other one is silent already"


def test_a_heartbeat_or_another_driver_is_a_sign_of_life() -> None:
    seen = Liveness().looked(REPORT, now=100.0)
    for newer in (replace(REPORT, sequence=6), replace(REPORT, incarnation=3, sequence=1)):
        assert not seen.looked(newer, now=125.0).is_silent(now=100.0 + ALIVE)


def test_no_host_is_silent_before_its_first_report() -> None:
    assert not Liveness().looked(None, now=0.0).is_silent(now=1e9)
    assert Liveness().pause(now=0.0) is None


def late(millis: int | None, name: str = "a") -> HostReport:
    metrics = {} if millis is None else {MILLIS_BEHIND: millis}
    return make_report(
        sequence=1, positions={("orders", name): 1}, metrics={"skew": 1.0, **metrics}
    )


def test_the_slowest_host_decides_how_far_the_source_is_behind() -> None:
    assert seconds_behind([late(0)]) == 0
    assert seconds_behind([late(1)]) == 1, "0 says that everything is read"
    assert [seconds_behind([late(millis)]) for millis in (1000, 1001, 2000)] == [1, 2, 2]
    assert millis_behind([late(1500), late(300)]) == 1500
    assert millis_behind([late(1500), late(None)]) is None, "unknown is not 0"
    assert millis_behind([late(7), make_report(sequence=1)]) == 7, (
        "a host without splits is not behind"
    )
    assert millis_behind([make_report(sequence=1)]) is None

    hosts = {"0": HostState(report=late(1500)), "1": HostState(report=late(300, "b"))}
    told = newest_report(CoordinatorState(hosts=hosts))
    assert told is not None
    assert told.metrics == {"skew": 2.0, MILLIS_BEHIND: 1500}
    silent = newest_report(CoordinatorState(hosts={**hosts, "1": HostState()}))
    assert silent is not None
    assert MILLIS_BEHIND not in silent.metrics


def test_lag_is_a_sum_over_all_hosts_or_unknown() -> None:
    some, unknown = make_report(lag=3), make_report(lag=None)
    assert records_behind([some, make_report(lag=0)]) == 3
    assert records_behind([some, unknown]) is None, "a host that does not know its lag"
    assert records_behind([some, None]) is None, "a host that has not reported"
    assert records_behind([]) is None, "unknown is never shown as zero"


def test_numbers_of_all_hosts_are_added_up_unless_one_has_no_number() -> None:
    first = {"batches": 2, "rate": 1.5, "only here": 1, "words": 1, "flag": True}
    second = {"batches": 3, "rate": 2.0, "words": "none", "flag": True}
    hosts = {
        name: HostState(report=make_report(sequence=1, metrics=metrics))
        for name, metrics in (("0", first), ("1", second))
    }
    found = newest_report(CoordinatorState(hosts=hosts))

    assert found is not None
    assert found.metrics == {"batches": 5, "rate": 3.5}


def test_a_source_that_all_hosts_leave_has_an_unknown_lag() -> None:
    leaving = HostState(report=make_report(lag=5), role=HostRole.LEAVING)
    told = newest_report(CoordinatorState(hosts={"0": leaving, "1": leaving}))
    assert told is not None
    assert told.lag is None


STARTED_AT = 1_767_225_600.0
"""2026-01-01T00:00:00Z, when the second driver's pod was created."""


def of_host(heartbeat: float, *, incarnation: int = 1) -> CoordinatorState[Any]:
    report = make_report(incarnation, sequence=1, heartbeat=heartbeat)
    return CoordinatorState(hosts={"0": HostState(incarnation=incarnation, report=report)})


def restarted(pulses: Pulses, *, now: float, phase: str = "Running") -> None:
    """Two drivers of one application: one that failed, and the newer one."""
    dead = driver_pod(phase="Failed", uid="a", creationTimestamp="2026-01-01T00:05:00Z")
    newer = driver_pod(phase=phase, uid="b", creationTimestamp="2026-01-01T00:00:00Z")
    pulses.look_at_drivers({"0": [spark_application()]}, [dead, newer], now=now)


@pytest.mark.parametrize("phase", ["Pending", "Running"])
def test_a_driver_is_starting_until_its_host_reports(phase: str) -> None:
    pulses, before, after = Pulses(), of_host(STARTED_AT - 1), of_host(STARTED_AT + 9)
    pulses.look_at(before, now=99.0)
    assert pulses.starting(before) == {}, "no pod was seen"
    restarted(pulses, now=100.0, phase=phase)
    assert pulses.starting(before) == {"0": "orders-1-driver"}

    pulses.look_at(after, now=110.0)
    assert pulses.starting(after) == {}


def test_a_driver_that_has_ended_is_not_starting() -> None:
    pulses, before = Pulses(), of_host(STARTED_AT - 1)
    restarted(pulses, now=100.0)
    restarted(pulses, now=130.0, phase="Failed")
    assert pulses.starting(before) == {}


def test_a_host_that_has_never_reported_is_waited_for_elsewhere() -> None:
    pulses = Pulses()
    restarted(pulses, now=100.0)
    assert pulses.starting(CoordinatorState(hosts={"0": HostState()})) == {}
    assert pulses.starting(CoordinatorState(hosts={})) == {}
    assert pulses.starting(of_host(0.0)) == {}, "an unknown time is no time before"


def test_the_clock_of_the_drivers_node_may_be_an_hour_behind() -> None:
    """A report is the new driver's when no older one can live any more."""
    pulses, early = Pulses(), of_host(STARTED_AT - 3590)
    restarted(pulses, now=100.0)
    pulses.look_at(early, now=110.0)
    assert pulses.starting(early) == {"0": "orders-1-driver"}

    late = of_host(STARTED_AT - 3560, incarnation=2)
    restarted(pulses, now=100.0 + ALIVE)
    pulses.look_at(late, now=100.0 + ALIVE)
    assert pulses.starting(late) == {}
