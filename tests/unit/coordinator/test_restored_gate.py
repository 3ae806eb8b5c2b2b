"""A coordinator that is restored while hosts wait at the gate."""

from dataclasses import replace
from typing import Any

from balanced_source.api import SplitId
from balanced_source.coordinator import SourceCoordinator
from balanced_source.coordinator.state import Checkpoint, HostState
from balanced_source.coordinator.view import AttributeTable
from balanced_source.documents.report import HostReport
from balanced_source.lifecycles import HostPhase
from support.world import kafka_source

A: SplitId = ("c", "t", 0)
B: SplitId = ("c", "t", 1)


def waiting(incarnation: int) -> HostState:
    """Return a host whose report waits behind the gate."""
    report = HostReport(incarnation=incarnation)
    return HostState(phase=HostPhase.RECOVERING, incarnation=incarnation, report=report)


def restored(**hosts: HostState) -> "SourceCoordinator[Any, Any]":
    """Return a started coordinator with these hosts, h0 and h1, from a stored state."""
    source: Any = kafka_source("c")
    first: SourceCoordinator[Any, Any] = SourceCoordinator(source)
    first.start(now=0.0)
    stored = first.checkpoint()
    known = {name.removeprefix("h"): host for name, host in hosts.items()}
    state = replace(stored.coordinator, hosts=known, has_history=True)
    again: SourceCoordinator[Any, Any] = SourceCoordinator(
        source, restored=Checkpoint(coordinator=state, enumerator=stored.enumerator)
    )
    again.start(now=1.0)
    return again


def test_a_gate_that_nothing_keeps_closed_opens_at_the_start() -> None:
    """The release that stored the state may have waited for more."""
    coordinator = restored(h0=waiting(1), h1=waiting(2))

    assert coordinator.waiting_for == ()
    assert {h.phase for h in coordinator.state.hosts.values()} == {HostPhase.ACTIVE}


def test_a_gate_stays_closed_for_a_host_that_is_missing() -> None:
    coordinator = restored(h0=waiting(1), h1=HostState())

    assert coordinator.waiting_for == ("1",)
    assert coordinator.state.hosts["0"].phase is HostPhase.RECOVERING


def test_a_fork_of_a_table_of_attributes_continues_by_itself() -> None:
    source, table = kafka_source("c"), AttributeTable()
    first = {A: source.create_split(A, 0, {"stop": 5})}
    known = table.of(first)

    fork = table.fork()
    assert fork.of(first) is known
    assert fork.of({**first, B: source.create_split(B, 0, {"stop": 6})}).keys() == {A, B}
    assert table.of(first) is known
