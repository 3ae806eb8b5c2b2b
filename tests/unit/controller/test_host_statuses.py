"""What a status says of each of several hosts."""

from dataclasses import replace
from typing import Any

from balanced_source.coordinator import CoordinatorState
from balanced_source_operator.controller.application_facts import ApplicationState
from balanced_source_operator.controller.conditions import status_of
from balanced_source_operator.controller.decisions import Decision
from support.status_facts import facts
from unit.controller.test_ended_hosts import state

RUNS = Decision(state=ApplicationState.RUNNING, name="orders-1")


def with_lags(first: int, second: int) -> CoordinatorState[Any]:
    known = state()
    lags = {"0": first, "1": second}
    hosts = {}
    for name, host in known.hosts.items():
        assert host.report is not None
        hosts[name] = replace(host, report=replace(host.report, lag=lags[name]))
    return replace(known, hosts=hosts)


def test_the_lag_of_a_silent_host_is_unknown() -> None:
    both = {"0": RUNS, "1": RUNS}
    known = facts(state=with_lags(7, 9), hosts=both, silent_hosts=frozenset({"1"}))

    assert [host.lag for host in status_of(known).hosts] == [7, None]
