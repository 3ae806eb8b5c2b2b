"""Group E: recovery with reported splits (FLIP-537), and upstream's defects X4, X5 and X11."""

import itertools

import pytest

from balanced_source.errors import ContractViolationError
from support.stage import Stage, bounded_source, splits
from support.world import kafka_source

ELEVEN = {split: 1000 + number for number, split in enumerate(splits("t", 11))}


def lost_state(readers: int, *, partitions: int, source: object = None) -> Stage:
    """Readers come with their Spark checkpoints to an operator that knows nothing."""
    stage = Stage(readers=readers, source=source or kafka_source("c"))  # type: ignore[arg-type]
    return stage.topic("t", partitions, end=5000).state_lost().operator_starts()


def redistributed() -> Stage:
    """One host reported all eleven splits, and they were dealt over both; no checkpoint since."""
    stage = lost_state(2, partitions=11).registers(0, holding=ELEVEN).registers(1).discovers()
    assert stage.loads == [6, 5]
    return stage


@pytest.mark.scenario("E1")
def test_e1_splits_that_one_reader_reports_are_spread_over_all_after_discovery() -> None:
    """Nothing before the discovery.

    Then ten splits over four readers, none of the topic that is gone.
    """
    stage = lost_state(4, partitions=10)
    held = {**dict.fromkeys(splits("t", 10), 7), **dict.fromkeys(splits("gone", 2), 7)}

    stage.registers(0, holding=held).registers(1).registers(2).registers(3)
    assert [stage.given(reader) for reader in range(4)] == [set()] * 4

    stage.discovers().looks_again()
    assert sorted(stage.loads) == [2, 2, 3, 3]
    assert stage.positions() == dict.fromkeys(splits("t", 10), 7)
    assert stage.pending == set()


@pytest.mark.hosts_apart
@pytest.mark.scenario("E2")
def test_e2_a_retained_split_is_kept_where_it_was() -> None:
    """Its host continues keeping the position of a removed cluster's split; no one reads it.

    A return continues there.
    """
    both = kafka_source("c", "d", retention=60.0)
    stage = Stage(readers=2, source=both).topic("t", 1).topic("t", 1, cluster="d", end=5).running()
    stage.source_changes(kafka_source("c", retention=60.0)).adopts()

    stage.fails(0).fails(1).operator_starts().registers(0)
    assert stage.given(0) == stage.given(1) == set()
    stage.registers(1).discovers().adopts()

    assert set(stage.owners) == {("c", "t", 0)}
    assert stage.assignment.retained == {("d", "t", 0)}
    assert sum(("d", "t", 0) in stage.kept(host) for host in (0, 1)) == 1
    stage.source_changes(both).discovers()
    assert stage.positions()["d", "t", 0] == 5


@pytest.mark.scenario("E3")
def test_e3_four_splits_of_one_reader_become_two_and_two() -> None:
    """A full recovery balances over all readers."""
    stage = (
        lost_state(2, partitions=4)
        .registers(0, holding=dict.fromkeys(splits("t", 4), 3))
        .registers(1)
    )

    assert stage.discovers().loads == [2, 2]


@pytest.mark.hosts_apart
@pytest.mark.scenario("E4")
def test_e4_two_hosts_with_the_same_split_are_an_error() -> None:
    """The error names the split and both hosts."""
    stage = lost_state(2, partitions=1).registers(0, holding={("c", "t", 0): 3})

    with pytest.raises(
        ContractViolationError, match="split c/t/0 is reported by host 0 and by host 1"
    ):
        stage.registers(1, holding={("c", "t", 0): 4})


@pytest.mark.scenario("E5")
@pytest.mark.parametrize("discovery_comes", ["first", "last"])
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_e5_positions_are_exactly_as_reported(discovery_comes: str, order: tuple[int, int]) -> None:
    """Each split has one owner and continues at its reported position, whatever the order."""
    stage = lost_state(2, partitions=11)
    if discovery_comes == "first":
        stage.discovers()

    for host in order:
        stage.registers(host, holding=ELEVEN if host == 0 else {})
    stage.discovers()

    assert stage.positions() == ELEVEN
    assert sorted(stage.loads) == [5, 6]
    assert stage.given(0).isdisjoint(stage.given(1))


@pytest.mark.scenario("E6")
@pytest.mark.parametrize("failing", list(itertools.permutations((0, 1))))
@pytest.mark.parametrize("returning", list(itertools.permutations((0, 1))))
def test_e6_all_fail_again_before_a_checkpoint(
    failing: tuple[int, ...], returning: tuple[int, ...]
) -> None:
    """Each gets back what it owns now, not what its old checkpoint says; positions as reported."""
    stage = redistributed()
    current = stage.owners

    for host in failing:
        stage.fails(host)
    for host in returning:
        stage.registers(host)

    assert stage.owners == current
    assert stage.positions() == ELEVEN
    assert (stage.given(0), stage.given(1)) == (stage.owned(0), stage.owned(1))


@pytest.mark.scenario("E6")
def test_e6_one_fails_after_the_other_has_returned() -> None:
    """Interleaved failures change nothing either."""
    stage = redistributed()
    current = stage.owners

    stage.fails(0).registers(0).fails(1).fails(0).registers(1).registers(0)

    assert (stage.owners, stage.positions()) == (current, ELEVEN)


@pytest.mark.hosts_apart
@pytest.mark.scenario("E7", "X5")
@pytest.mark.parametrize("failing", [0, 1])
def test_e7_one_reader_fails_after_redistribution(failing: int) -> None:
    """Its report is older than what was decided since.

    The decision wins, and the survivor sees nothing.
    """
    stage = redistributed()
    survivor = 1 - failing
    stage.adopts(survivor)
    mine, others = stage.given(failing), stage.given(survivor)

    stage.fails(failing).registers(failing).adopts()

    assert (stage.given(failing), stage.given(survivor)) == (mine, others)
    assert set(stage.read(failing)) == mine
    assert set(stage.read(survivor)) == others


@pytest.mark.scenario("E8")
def test_e8_reports_after_a_checkpoint_are_used() -> None:
    """The failed reader comes back with its own progress, and continues there."""
    stage = redistributed().adopts()
    mine = stage.given(0)

    stage.topic("t", 11).more(10_000).adopts(0).fails(0).registers(0)

    assert stage.given(0) == mine
    assert {stage.positions()[split] for split in mine} == {15_000}


@pytest.mark.hosts_apart
@pytest.mark.scenario("E10")
def test_e10_a_partition_that_is_found_while_a_reader_is_awaited() -> None:
    """It is held until all are there, assigned once; its owner's failures affect no others."""
    stage = redistributed().adopts().fails(0).fails(1).registers(0)
    stage.topic("t", 12, begin=2500, end=2500).looks_again()
    assert stage.given(0) == stage.given(1) == set()

    stage.registers(1)
    new = ("c", "t", 11)
    assert stage.positions()[new] == 2500
    owner, current = stage.owners[new], stage.owners
    for _ in range(2):
        survivor = stage.given(1 - owner)
        stage.fails(owner).registers(owner)
        assert (stage.owners, stage.given(1 - owner)) == (current, survivor)
        assert stage.positions()[new] == 2500


@pytest.mark.hosts_apart
@pytest.mark.scenario("E11")
def test_e11_a_retained_split_stays_with_the_reader_that_fails() -> None:
    """After its failure the same host, and no other, still keeps the position.

    No one is assigned the split.
    """
    stage = (
        Stage(readers=2, source=kafka_source("c", retention=600.0)).topic("t", 3, end=123).running()
    )
    stage.topic_deleted("t").topic("u", 1).looks_again(2).adopts()
    keeper = next(host for host in (0, 1) if ("c", "t", 0) in stage.kept(host))

    stage.fails(keeper).registers(keeper).adopts()

    assert stage.kept(keeper)["c", "t", 0] == 123
    assert ("c", "t", 0) not in stage.kept(1 - keeper)
    assert ("c", "t", 0) not in stage.owners


@pytest.mark.scenario("E12")
@pytest.mark.parametrize("discovery_comes", ["first", "last"])
@pytest.mark.parametrize("state", ["kept", "lost"])
def test_e12_a_bounded_source_recovers_with_its_ends(discovery_comes: str, state: str) -> None:
    """No reader is told the end before it has its splits; each split stops where it should."""
    stage = Stage(readers=2, source=bounded_source("c", "d"))
    stage.topic("t", 2, end=1000).topic("t", 2, cluster="d", end=1000).running()
    stage.topic("t", 2).more(500)
    if state == "lost":
        stage.store.state = None
    stage.operator_starts()
    if discovery_comes == "first":
        stage.discovers()
    stage.fails(0).fails(1)

    seen = stage.watch(lambda: stage.registers(0).registers(1).discovers())

    assert all(document.no_more_splits <= set(document.owners.values()) for document in seen)
    assert stage.told_no_more == {0, 1}
    assert {attributes["stop"] for attributes in stage.assignment.attributes.values()} == {1000}
    assert len(stage.assignment.attributes) == 4
    stage.fails(1).registers(1)
    assert stage.told_no_more == {0, 1}
    assert len(stage.assignment.attributes) == 4


@pytest.mark.scenario("E13", "X4")
@pytest.mark.parametrize("state", ["kept", "lost"])
def test_e13_a_checkpoint_inside_the_window_keeps_the_reports(state: str) -> None:
    """The operator dies after the reports and before the assignment.

    Readers that then report nothing still get all.
    """
    held = dict.fromkeys(splits("t", 2), 42)
    stage = lost_state(2, partitions=2)
    if state == "kept":
        stage.discovers().registers(0, holding=held).registers(1).adopts().fails(0).fails(1)
    stage.registers(0, holding=held)

    stage.operator_starts()
    assert stage.state.hosts["0"].report is not None
    stage.registers(0, holding={}).registers(1, holding={}).discovers()

    assert set(stage.positions()) == set(held)
    assert min(stage.positions().values()) >= 42
    assert stage.loads == [1, 1]


@pytest.mark.scenario("E15", "X11")
@pytest.mark.parametrize("restart", [True, False])
def test_e15_an_empty_report_after_a_checkpoint_in_the_window_loses_nothing(restart: bool) -> None:
    """What the reader says now is empty.

    What was persisted is still assigned after the discovery.
    """
    held = dict.fromkeys(splits("t", 2), 42)
    stage = lost_state(2, partitions=2).registers(0, holding=held)
    if restart:
        stage.operator_starts()

    stage.registers(0, holding={}).registers(1, holding={}).discovers()

    assert stage.positions() == held
    assert stage.loads == [1, 1]


@pytest.mark.scenario("E16")
def test_e16_a_reported_split_of_a_cluster_that_does_not_answer_is_read_on() -> None:
    """A subscribed cluster that cannot be asked is no reason to drop its splits.

    Its trouble is told.

    Upstream may have no enumerator for such a cluster, and fails; here every subscribed cluster is
    looked after.
    """
    stage = Stage(readers=2, source=kafka_source("c", "d")).cluster_down("d").operator_starts()

    stage.registers(0, holding={("d", "t", 0): 42}).registers(1).discovers().looks_again(3)

    assert stage.positions() == {("d", "t", 0): 42}
    assert "d" in stage.operator.coordinator.enumerator.problems()
