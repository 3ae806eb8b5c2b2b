"""Bugs that exploration of every state has found, each as its shortest trace."""

import pytest

from balanced_source.coordinator import CallCompleted
from support.world import Broker, Driver, Operator, Store, kafka_source

pytestmark = pytest.mark.unit

A, B = ("c", "t", 0), ("c", "t", 1)


def make_world(*hosts: str) -> tuple[Operator, list[Driver]]:
    broker, store = Broker(), Store()
    broker.create("c", "t", range(2), end=5)
    operator = Operator(
        source=kafka_source("c"), store=store, broker=broker, parallelism=2, hosts=hosts
    )
    return operator, [Driver(store=store, broker=broker, name=name) for name in hosts]


def answer_first_call(operator: Operator) -> None:
    call = operator.calls.pop(0)
    operator.handle(CallCompleted(call.call_id, operator.broker.execute(call.call)))


def test_a_report_that_arrives_during_the_look_up_of_its_splits_wins() -> None:
    """After a loss of state a split was owned by the report, and pending by the look-up."""
    operator, [driver] = make_world("0")
    operator.start()
    operator.answer()
    driver.start()
    operator.see_reports()
    driver.see_assignment()
    driver.batch()
    driver.batch()  # it ends the first one
    operator.store.state = None
    operator.start()
    answer_first_call(operator)
    driver.see_assignment()
    operator.see_reports()

    operator.answer()

    state = operator.coordinator.state
    assert {s: state.position(s) for s in state.owners} == {A: 5, B: 5}
    assert operator.coordinator.enumerator.pending_splits() == 0


def test_a_closed_gate_also_keeps_splits_from_hosts_that_have_not_registered() -> None:
    """While one host waited at the gate, all that was found went to hosts yet unregistered."""
    operator, [_, other] = make_world("0", "1")
    operator.start()
    operator.answer()
    operator.store.state = None
    operator.start()
    other.start()
    other.see_assignment()
    operator.see_reports()

    operator.answer()

    assert operator.coordinator.waiting_for == ("0",)
    assert operator.coordinator.state.owners == {}


def test_a_host_behind_the_gate_is_not_addressed_when_the_operator_starts_again() -> None:
    """The epoch of its predecessor was published again, for the new incarnation, which read on.

    Another got it too.
    """
    operator, [one, other] = make_world("0", "1")
    operator.start()
    operator.answer()
    for driver in (one, other):
        driver.start()
        operator.see_reports()
        driver.see_assignment()
        driver.batch()
    operator.see_reports()
    operator.store.state = None
    operator.start()
    operator.answer()
    one.see_assignment()
    operator.see_reports()
    assert operator.coordinator.waiting_for == ("1",)
    operator.start()

    one.see_assignment()

    assert one.host.assignment is None


def test_splits_of_a_host_without_readers_still_count() -> None:
    """Parallelism fell while the state was lost.

    What the idle host reported was attributed to no one.
    """
    operator, [one, other] = make_world("0", "1")
    operator.start()
    operator.answer()
    one.start()
    other.start()
    operator.see_reports()
    other.see_assignment()
    other.batch()
    other.batch()  # it ends the first one
    operator.store.state, operator.parallelism = None, 1
    operator.start()
    operator.answer()
    for driver in (one, other):
        if driver is one:
            driver.start()
        driver.see_assignment()
        operator.see_reports()

    assert operator.coordinator.state.owners[B] == 0
    assert operator.coordinator.state.position(B) == 5
