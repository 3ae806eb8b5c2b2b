"""What the reports of several hosts say together, and until when they are signs of life."""

from dataclasses import replace
from typing import Any

import pytest

from balanced_source.api import Problem
from balanced_source.coordinator import CoordinatorState, HostState
from balanced_source.documents.report import POSITIONS_AT, UNREAD_AT, HostReport
from balanced_source_operator.controller.liveness import (
    ALIVE,
    Pulses,
    is_heartbeat,
    newest_report,
)
from support.builders import driver_pod, make_report, spark_application

CUT = Problem(reason="LogTruncated", message="a")
SLOW = Problem(reason="NoLeader", message="b")
OLDER = make_report(
    2,
    sequence=5,
    epoch=3,
    parallelism=2,
    heartbeat=10.0,
    lag=3,
    positions={("t", "a"): 7},
    problems=(CUT,),
    metrics={"batches": 1, UNREAD_AT: 10.0, POSITIONS_AT: 10.0},
)
NEWER = make_report(
    4,
    sequence=6,
    epoch=5,
    parallelism=3,
    heartbeat=20.0,
    lag=4,
    positions={("t", "b"): 8},
    problems=(SLOW,),
    metrics={"batches": 2, UNREAD_AT: 20.0, POSITIONS_AT: 20.0},
)


def together(*reports: HostReport | None) -> HostReport | None:
    hosts = {str(number): HostState(report=report) for number, report in enumerate(reports)}
    return newest_report(CoordinatorState(hosts=hosts))


@pytest.mark.parametrize("reports", [(OLDER, NEWER), (NEWER, OLDER)])
def test_reports_of_all_hosts_are_joined(reports: tuple[HostReport, HostReport]) -> None:
    found = together(*reports)

    assert found is not None
    assert (found.epoch, found.parallelism) == (5, 3), "of the newest assignment"
    assert (found.incarnation, found.sequence, found.lag) == (6, 11, 7)
    assert found.owners == {("t", "a"): 0, ("t", "b"): 0}
    assert found.positions == {("t", "a"): 7, ("t", "b"): 8}
    assert found.heartbeat == 10.0, "the oldest one"
    assert found.problems == tuple(each.problems[0] for each in reports)
    assert found.metrics == {"batches": 3}, "times have no sum"


def test_a_host_that_has_not_reported_leaves_the_lag_unknown() -> None:
    assert together() is None
    assert together(None) is None
    assert together(None, None) is None
    assert together(OLDER) is OLDER, "as it is"
    found = together(OLDER, None)
    assert found is not None
    assert (found.sequence, found.lag) == (5, None)


def test_a_report_that_differs_in_its_time_only_is_a_heartbeat() -> None:
    after = replace(OLDER, sequence=6, heartbeat=19.0)
    assert is_heartbeat(OLDER, after)
    assert not is_heartbeat(None, after)
    assert not is_heartbeat(OLDER, replace(after, lag=4))
    assert not is_heartbeat(OLDER, replace(after, incarnation=3))


def test_a_host_was_heard_until_exactly_three_heartbeats_later() -> None:
    pulses = Pulses()
    assert not pulses.is_heard(now=0.0)
    assert pulses.silence("0", now=0.0) == 0.0
    pulses.look("0", None, now=50.0)
    assert not pulses.is_heard(now=50.0)
    pulses.look("0", OLDER, now=100.0)

    assert pulses.heard_at == 100.0
    assert pulses.is_heard(now=100.0 + ALIVE - 1)
    assert not pulses.is_heard(now=100.0 + ALIVE)
    assert pulses.silent(now=100.0 + ALIVE - 1) == frozenset()
    assert pulses.silent(now=100.0 + ALIVE) == {"0"}


@pytest.mark.parametrize(
    ("second", "silence"), [(100.0 + ALIVE - 1, ALIVE + 5), (100.0 + ALIVE, 6.0)]
)
def test_a_time_in_which_no_host_was_heard_does_not_count_as_silence(
    second: float, silence: float
) -> None:
    pulses = Pulses()
    pulses.look("0", OLDER, now=100.0)
    pulses.look("1", NEWER, now=second)

    assert pulses.silence("0", now=second + 6) == silence
    assert pulses.silence("1", now=second + 6) == 6.0
    assert pulses.silence("2", now=second + 6) == 0.0


def test_hosts_that_are_gone_are_not_waited_for() -> None:
    pulses = Pulses()
    both: CoordinatorState[Any] = CoordinatorState(
        hosts={"0": HostState(report=OLDER), "1": HostState(report=NEWER)}
    )
    pulses.look_at(both, now=100.0)
    assert pulses.silent(now=200.0) == {"0", "1"}
    pulses.look_at(replace(both, hosts={"1": both.hosts["1"]}), now=200.0)
    assert pulses.silent(now=200.0) == {"1"}


@pytest.mark.parametrize(
    ("heartbeat", "is_starting"),
    [(1_767_225_599.0, True), (1_767_225_600.0, False), (1_767_225_601.0, False)],
)
def test_a_report_of_the_second_in_which_a_driver_started_is_its_own(
    heartbeat: float, *, is_starting: bool
) -> None:
    pulses = Pulses()
    pod = driver_pod(uid="a", creationTimestamp="2026-01-01T00:00:00Z")
    pulses.look_at_drivers({"0": [spark_application()]}, [pod], now=100.0)
    host = HostState(incarnation=2, report=replace(OLDER, heartbeat=heartbeat))
    known: CoordinatorState[Any] = CoordinatorState(hosts={"0": host})
    pulses.look_at(known, now=110.0)

    assert pulses.starting(known) == ({"0": "orders-1-driver"} if is_starting else {})
