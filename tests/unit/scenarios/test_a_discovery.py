"""Group A: discovery and first assignment, with upstream's setup.

3 readers, 2 topics of 10, hash owners 6, 7, 7.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from balanced_source.api import SplitId
from balanced_source.assigners import AssignerIdentity, HashAssigner, Placement, SplitAssigner
from balanced_source.connectors.kafka import LATEST, DiscoverKafka, InitializeKafka
from balanced_source.errors import ContractViolationError
from support.stage import Stage, bounded_source, splits
from support.world import kafka_source

COUNTS = (6, 7, 7)


def stage_of_upstream(**changes: object) -> Stage:
    stage = Stage(readers=3, source=kafka_source("c", assigner=HashAssigner(), **changes))
    return stage.topic("topic", 10).topic("pattern-topic", 10)


@pytest.mark.scenario("A1", "A7")
@pytest.mark.parametrize("interval", [None, 0.0, -1.0])
def test_a1_one_time_discovery_looks_once(interval: float | None) -> None:
    """One discovery is asked for, and after its answer nothing is."""
    stage = stage_of_upstream(discovery_interval=interval).operator_starts()

    assert [type(call.call) for call in stage.operator.calls] == [DiscoverKafka]
    assert stage.discovers().operator.calls == []


@pytest.mark.scenario("A2")
def test_a2_periodic_discovery_looks_again() -> None:
    """After each answer the next discovery is asked for, one interval later."""
    stage = stage_of_upstream(discovery_interval=60.0).operator_starts().discovers()

    for _ in range(3):
        assert [(type(call.call), call.delay) for call in stage.operator.calls] == [
            (DiscoverKafka, 60.0)
        ]
        stage.looks_again()


@pytest.mark.hosts_apart
@pytest.mark.scenario("A3")
def test_a3_readers_first_discovery_later() -> None:
    """One published change gives each registered reader its splits.

    Upstream leaves out reader 2, which is not there; ours are decided for it too, and wait.
    """
    stage = stage_of_upstream().operator_starts().registers(0).registers(1)
    before = stage.epoch
    assert [stage.given(reader) for reader in range(3)] == [set(), set(), set()]

    stage.discovers()

    assert stage.epoch == before + 1
    assert [len(stage.given(reader)) for reader in range(3)] == [6, 7, 0]
    assert stage.loads == list(COUNTS)


@pytest.mark.hosts_apart
@pytest.mark.scenario("A4")
def test_a4_discovery_first_readers_one_after_another() -> None:
    """Whoever registers gets its splits at that moment, and changes nothing for the others."""
    stage = stage_of_upstream().operator_starts().discovers()
    assert [len(stage.given(reader)) for reader in range(3)] == [0, 0, 0]

    stage.registers(0)
    assert [len(stage.given(reader)) for reader in range(3)] == [6, 0, 0]

    stage.registers(1)
    assert [len(stage.given(reader)) for reader in range(3)] == [6, 7, 0]


@pytest.mark.scenario("A5", "A6", "A7")
@pytest.mark.parametrize(("interval", "told"), [(None, {0, 1, 2}), (0.0, {0, 1, 2}), (60.0, set())])
def test_a5_only_one_time_discovery_says_no_more_splits(
    interval: float | None, told: set[int]
) -> None:
    """After a one-time discovery every reader is told that there are no more splits.

    Never after a periodic one.
    """
    stage = (
        stage_of_upstream(discovery_interval=interval).operator_starts().discovers().all_register()
    )

    assert stage.told_no_more == told


@pytest.mark.scenario("A8")
def test_a8_a_discovery_without_a_change_assigns_nothing() -> None:
    """Nothing is published."""
    stage = stage_of_upstream().running()
    before = stage.epoch

    stage.looks_again(3)

    assert stage.epoch == before


@pytest.mark.scenario("A9")
def test_a9_a_late_topic_is_read_from_its_earliest_offset() -> None:
    """Splits of the first discovery start where the user said, later ones at the earliest."""
    stage = stage_of_upstream(starting_offsets=LATEST).running()

    stage.topic("dynamic_topic", 4, begin=2, end=30).looks_again()

    late = {s: p for s, p in stage.positions().items() if s[1] == "dynamic_topic"}
    assert late == dict.fromkeys(splits("dynamic_topic", 4), 2)
    assert {p for s, p in stage.positions().items() if s not in late} == {10}


@pytest.mark.hosts_apart
@pytest.mark.scenario("A11", "A12")
def test_a11_splits_wait_for_their_reader_and_continue_where_it_stopped() -> None:
    """While reader 0 is down no one gets its splits, a snapshot keeps them.

    It returns and gets exactly these.

    Upstream puts them back to the unassigned ones of the enumerator.
    """
    stage = stage_of_upstream().operator_starts().discovers().registers(0).registers(1).adopts(0, 1)
    mine, others = stage.given(0), stage.given(1)

    before = stage.fails(0).epoch
    stage.operator_starts().discovers()
    assert (stage.epoch, stage.given(1), stage.owned(0)) == (before, others, mine)

    stage.registers(0)
    assert (stage.given(0), stage.given(1), stage.given(2)) == (mine, others, set())
    assert {stage.positions()[s] for s in mine} == {10}


@pytest.mark.scenario("A13")
def test_a13_restored_assignments_are_not_assigned_again() -> None:
    """A restarted operator that discovers the same splits publishes nothing new."""
    stage = stage_of_upstream().running()
    before, owners = stage.epoch, stage.owners

    stage.operator_starts().discovers()

    assert (stage.epoch, stage.owners) == (before, owners)


@pytest.mark.scenario("A14")
def test_a14_snapshots_at_each_stage_of_discovery() -> None:
    """A split is in the state once its start position is known, never before.

    Then it has an owner at once.
    """
    stage = stage_of_upstream().operator_starts()
    enumerator = stage.operator.coordinator.enumerator
    assert (stage.pending, stage.loads, enumerator.snapshot_state().discovered) == (
        set(),
        [0, 0, 0],
        frozenset(),
    )

    stage.answers(DiscoverKafka)
    assert (stage.pending, stage.loads, enumerator.snapshot_state().discovered) == (
        set(),
        [0, 0, 0],
        frozenset(),
    )

    stage.answers(InitializeKafka)
    assert (stage.pending, stage.loads) == (set(), list(COUNTS))
    assert enumerator.snapshot_state().discovered == {"c"}


@dataclass(frozen=True)
class OneOwner(SplitAssigner):
    """Gives everything to one reader, whether it exists or not."""

    owner: int

    @property
    def identity(self) -> AssignerIdentity:
        return AssignerIdentity(name="OneOwner", parameters={"owner": self.owner})

    def place(self, placement: Placement) -> Mapping[SplitId, int]:  # type: ignore[override]
        return dict.fromkeys(placement.pending, self.owner)


@pytest.mark.scenario("A17")
@pytest.mark.parametrize("owner", [-1, 3])
def test_a17_an_owner_that_is_not_a_reader_is_rejected(owner: int) -> None:
    """The error names the split and the number of readers."""
    stage = (
        Stage(readers=3, source=kafka_source("c", assigner=OneOwner(owner)))
        .topic("t", 1)
        .operator_starts()
    )

    with pytest.raises(
        ContractViolationError, match=rf"\('c', 't', 0\) to {owner}, outside \[0, 3\)"
    ):
        stage.discovers()


@pytest.mark.scenario("A18", "X6")
def test_a18_a_discovery_during_initialisation_finds_nothing_new() -> None:
    """While start positions are being resolved a further discovery asks for none.

    Each split gets one owner.
    """
    stage = (
        Stage(readers=2, source=kafka_source("c", discovery_interval=1.0))
        .topic("t", 2)
        .operator_starts()
    )
    stage.answers(DiscoverKafka)

    stage.answers(DiscoverKafka, delayed=True)

    assert (
        len([call for call in stage.operator.calls if isinstance(call.call, InitializeKafka)]) == 1
    )
    before = stage.epoch
    stage.answers(InitializeKafka)
    assert (stage.epoch, stage.loads) == (before + 1, [1, 1])
    stage.all_register().adopts().topic("t", 2, end=100).adopts().looks_again(3).adopts()
    assert sum(len(driver.delivered) for driver in stage.drivers.values()) == 20


@pytest.mark.scenario("A19", "X7")
@pytest.mark.parametrize("partitions", [4, 0])
def test_a19_a_restored_bounded_source_still_ends(partitions: int) -> None:
    """Readers that register after a restore are told the end, though discovery changed nothing."""
    stage = Stage(readers=2, source=bounded_source("c")).topic("t", partitions).running()
    assert stage.told_no_more == {0, 1}

    stage.operator_starts().all_register()
    assert stage.told_no_more == set()

    stage.discovers().adopts()
    assert stage.told_no_more == {0, 1}
    assert stage.operator.coordinator.enumerator.is_finished()
