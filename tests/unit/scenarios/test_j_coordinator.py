"""Group J: the source coordinator."""

from dataclasses import dataclass
from typing import Any

import pytest

from balanced_source.api import SplitEnumeratorContext, SplitsAssignment
from balanced_source.connectors.discovery import DiscoveringSplitEnumerator, DiscoveryState
from balanced_source.connectors.kafka import KafkaPartitionSplit, KafkaSource
from balanced_source.coordinator import ParallelismChanged, SourceCoordinator
from balanced_source.errors import ContractViolationError
from support.stage import Stage, splits
from support.world import kafka_source


@pytest.mark.scenario("J1")
def test_j1_nothing_can_be_asked_before_the_start_and_it_starts_once() -> None:
    """Events before the start, and a second start, are contract violations."""
    coordinator: SourceCoordinator[Any, Any] = SourceCoordinator(kafka_source("c"), parallelism=2)
    with pytest.raises(ContractViolationError, match="not started"):
        coordinator.handle(ParallelismChanged(3), now=0.0)

    coordinator.start(now=0.0)
    with pytest.raises(ContractViolationError, match="started already"):
        coordinator.start(now=0.0)


@pytest.mark.hosts_apart
@pytest.mark.scenario("J2")
def test_j2_splits_are_dealt_and_one_reader_registers() -> None:
    """Six splits on three readers: reader 0 gets 0 and 3, the other four wait for theirs."""
    stage = Stage(readers=3).topic("t", 6).operator_starts().discovers().registers(0)

    assert stage.given(0) == {("c", "t", 0), ("c", "t", 3)}
    assert stage.given(1) | stage.given(2) == set()
    assert stage.loads == [2, 2, 2]


@pytest.mark.hosts_apart
@pytest.mark.scenario("J3")
def test_j3_checkpoint_and_restore() -> None:
    """The restored coordinator knows the same owners, and still waits for missing readers."""
    stage = Stage(readers=3).topic("t", 6).operator_starts().discovers().registers(0)
    owners = stage.owners

    stage.operator_starts().discovers()

    assert stage.owners == owners
    assert len(stage.given(0)) == 2
    assert stage.given(1) | stage.given(2) == set()


@pytest.mark.hosts_apart
@pytest.mark.scenario("J5")
def test_j5_a_failure_after_a_completed_checkpoint_reverts_nothing() -> None:
    """What reader 0 has acknowledged stays its own; no one else's splits change."""
    stage = Stage(readers=3).topic("t", 6).operator_starts().discovers().registers(0).adopts(0)
    owners = stage.owners
    assert stage.state.tracker.uncovered_since(0).keys() == owners.keys() - stage.given(0)

    stage.fails(0).registers(0)

    assert stage.owners == owners
    assert set(stage.given(0)) == {("c", "t", 0), ("c", "t", 3)}


@pytest.mark.scenario("J7")
def test_j7_an_assignment_to_a_reader_that_is_not_registered_is_refused() -> None:
    """The error names the reader and those that are there."""
    stage = Stage(readers=2).operator_starts()
    context: SplitEnumeratorContext[KafkaPartitionSplit] = (
        stage.operator.coordinator.enumerator.context
    )
    split = KafkaPartitionSplit(cluster="c", topic="t", partition=0, offset=0)

    with pytest.raises(
        ContractViolationError, match=r"reader 2 is not registered; registered are \[0, 1\]"
    ):
        context.assign_splits(SplitsAssignment(assignment={2: [split]}))


class FailingEnumerator(DiscoveringSplitEnumerator[KafkaPartitionSplit]):
    """Fails where the test wants it."""

    where = "start"

    def start(self) -> None:
        if self.where == "start":
            raise ValueError("no luck")
        super().start()

    def handle_discovery(self, call: Any, result: Any) -> None:
        raise ValueError("no luck")


@dataclass(frozen=True, slots=True, kw_only=True)
class FailingSource(KafkaSource):
    """Its enumerator fails."""

    def create_enumerator(
        self, context: SplitEnumeratorContext[KafkaPartitionSplit]
    ) -> FailingEnumerator:
        return FailingEnumerator(context, self, DiscoveryState())


@pytest.mark.scenario("J8")
@pytest.mark.parametrize("where", ["start", "handle_discovery"])
def test_j8_what_the_enumerator_raises_comes_out_with_its_cause(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is stored or published in the step that failed."""
    monkeypatch.setattr(FailingEnumerator, "where", where)
    plain = kafka_source("c")
    source = FailingSource(
        **{name: getattr(plain, name) for name in KafkaSource.__dataclass_fields__}
    )
    stage = Stage(readers=1, source=source).topic("t", 1)

    with pytest.raises(ValueError, match="no luck"):
        stage.operator_starts().discovers()

    assert (stage.store.state, stage.store.assignment) == (None, None)


@pytest.mark.scenario("J10")
def test_j10_with_the_opt_in_a_reader_starts_without_splits_and_reports_them() -> None:
    """A restarted host has splits in its checkpoint, reports all, and reads none until told."""
    stage = Stage(readers=2).topic("t", 4).running()
    held = stage.read(0)

    stage.more(5).fails(0)
    driver = stage.drivers["0"]
    driver.start()

    report = driver.report()
    assert report is not None
    assert dict(report.positions) == held
    assert driver.batch() is False
    stage.registers(0).adopts(0)
    assert set(stage.read(0)) == set(held)


@pytest.mark.hosts_apart
def test_a_checkpoint_is_complete_when_the_slowest_host_has_it() -> None:
    """The enumerator hears of each epoch that all hold, also when the fastest is far ahead."""
    stage = Stage(readers=2).topic("t", 2).running()
    heard: list[int] = []
    stage.operator.coordinator.enumerator.notify_checkpoint_complete = heard.append
    first = stage.epoch

    stage.topic("u", 1).looks_again().adopts(0)
    stage.topic("v", 1).looks_again().adopts(0)
    assert heard == []
    stage.drivers["1"].batch()  # it has not seen anything new
    stage.adopts(1)
    assert heard == [first + 2]

    stage.topic("w", 1).looks_again().adopts(1)
    stage.topic("x", 1).looks_again().adopts(1)
    stage.drivers["0"].see_assignment()
    assert heard == [first + 2]
    stage.adopts(0)
    assert heard == [first + 2, first + 4]


@pytest.mark.hosts_apart
def test_a_checkpoint_is_still_announced_after_the_fastest_host_passed_it() -> None:
    """Host 1 reaches an epoch that host 0 has left behind.

    It is complete then, not at some later one.
    """
    stage = Stage(readers=2).topic("t", 2).running()
    heard: list[int] = []
    stage.operator.coordinator.enumerator.notify_checkpoint_complete = heard.append
    stage.topic("u", 1).looks_again()
    middle = stage.epoch
    stage.drivers["1"].see_assignment()
    stage.topic("v", 1).looks_again().adopts(0)

    stage.drivers["1"].batch()
    stage.drivers["1"].report()
    stage.operator.see_reports()

    assert heard == [middle]
    assert stage.owners.keys() >= set(splits("v", 1))
