"""Group D: several clusters in one source (upstream's dynamic source), and offline changes.

Upstream's setup: 2 clusters of 3 partitions, 3 readers. Its global mode derives the next owner from
a count; ours fills up the emptiest reader.
"""

import pytest

from balanced_source.assigners import HashAssigner, RoundRobinAssigner
from balanced_source.connectors.kafka import KafkaCluster, KafkaSource, TopicList
from balanced_source.errors import InvalidSpecError
from support.builders import make_spec
from support.stage import Stage, bounded_source, splits
from support.world import kafka_source

BOTH = kafka_source("c", "d")
ONLY_C = kafka_source("c")
HOUR = 3600.0


def two_clusters(*, readers: int = 3, source: KafkaSource = BOTH) -> Stage:
    return Stage(readers=readers, source=source).topic("t", 3).topic("t", 3, cluster="d")


@pytest.mark.scenario("D1", "D2")
@pytest.mark.parametrize(("interval", "expected"), [(None, []), (60.0, [60.0, 60.0])])
def test_d1_each_cluster_is_discovered_once_or_periodically(
    interval: float | None, expected: list[float]
) -> None:
    """Per cluster one discovery; afterwards none, or one per interval."""
    stage = two_clusters(
        source=kafka_source("c", "d", discovery_interval=interval)
    ).operator_starts()
    assert [call.delay for call in stage.operator.calls] == [0.0, 0.0]

    assert [call.delay for call in stage.discovers().operator.calls] == expected


@pytest.mark.scenario("D3", "D26")
def test_d3_a_cluster_that_is_down_at_the_first_start_is_asked_again() -> None:
    """Its trouble is told, the other cluster is read meanwhile, and it joins when it answers.

    Upstream's job fails.
    """
    stage = two_clusters().cluster_down("d").running()
    assert {s[0] for s in stage.owners} == {"c"}
    assert set(stage.operator.coordinator.enumerator.problems()) == {"d"}

    stage.clusters_up().looks_again()

    assert stage.loads == [2, 2, 2]
    assert stage.operator.coordinator.enumerator.problems() == {}


@pytest.mark.scenario("D4")
def test_d4_a_restore_while_clusters_are_down_moves_nothing() -> None:
    """Restored splits are read on, however long the clusters do not answer.

    Upstream's restore fails at once.
    """
    stage = two_clusters().running()
    before, owners = stage.epoch, stage.owners

    stage.cluster_down("c", "d").operator_starts().discovers().looks_again(5)

    assert (stage.epoch, stage.owners) == (before, owners)
    assert set(stage.operator.coordinator.enumerator.problems()) == {"c", "d"}


@pytest.mark.scenario("D6", "D9")
def test_d6_a_cluster_that_is_added_comes_with_one_change() -> None:
    """Its splits are published at once, each has one owner, and none of the old ones moves."""
    stage = two_clusters(source=ONLY_C).running()
    before, owners = stage.epoch, stage.owners

    documents = stage.watch(lambda: stage.source_changes(BOTH).discovers())

    # the new settings, then the new splits
    assert [len(document.owners) for document in documents] == [3, 6]
    assert stage.epoch == before + 2
    assert {s: stage.owners[s] for s in owners} == owners
    assert stage.loads == [2, 2, 2]


@pytest.mark.scenario("D7")
def test_d7_the_same_description_again_changes_nothing() -> None:
    """An equal source is no change."""
    stage = two_clusters().running()
    before = stage.epoch

    stage.source_changes(kafka_source("c", "d")).discovers()

    assert stage.epoch == before


@pytest.mark.hosts_apart
@pytest.mark.scenario("D8")
def test_d8_only_registered_readers_get_splits() -> None:
    """Reader 1 gets its splits when it comes, and the others see no change."""
    stage = two_clusters().operator_starts().registers(0).registers(2).discovers()
    assert [len(stage.given(reader)) for reader in range(3)] == [2, 0, 2]
    others = stage.given(0), stage.given(2)

    stage.registers(1)

    assert len(stage.given(1)) == 2
    assert (stage.given(0), stage.given(2)) == others


@pytest.mark.scenario("D10")
def test_d10_the_snapshot_holds_all_splits_once_they_are_known() -> None:
    """None before the discovery, six owned ones after it, also in the snapshot that is restored."""
    stage = two_clusters().operator_starts()
    assert stage.owners == {}

    stage.discovers().operator_starts()

    assert len(stage.owners) == 6
    assert stage.pending == set()


@pytest.mark.scenario("D11")
def test_d11_a_topic_is_dropped_before_all_readers_are_there() -> None:
    """The reader that comes last gets nothing of the dropped topic."""
    stage = Stage(readers=3, source=ONLY_C).topic("t", 3).topic("t2", 3)
    stage.operator_starts().registers(0).registers(1).discovers().adopts(0, 1)

    stage.topic_deleted("t2").looks_again(2).adopts(0, 1).registers(2).adopts()

    assert set(stage.owners) == set(splits("t", 3))
    assert stage.given(0) | stage.given(1) | stage.given(2) == set(splits("t", 3))


@pytest.mark.scenario("D12", "K7", "K10")
@pytest.mark.parametrize("readers", [3, 4])
def test_d12_a_removed_cluster_returns_within_its_retention(readers: int) -> None:
    """Its positions survive a restart and a rescale, and its splits continue where they stopped."""
    both, only_c = kafka_source("c", "d", retention=HOUR), kafka_source("c", retention=HOUR)
    stage = two_clusters(source=both).running()
    stage.source_changes(only_c).adopts()
    assert set(stage.owners) == set(splits("t", 3))

    stage.operator_starts().rescales(readers).discovers().adopts()
    stage.more(5).source_changes(both).discovers()

    returned = {s: p for s, p in stage.positions().items() if s[0] == "d"}
    assert returned == dict.fromkeys(splits("t", 3, cluster="d"), 10)
    assert stage.operator.coordinator.enumerator.snapshot_state().retained == {}
    assert stage.spread <= 1


@pytest.mark.scenario("D12", "K9")
def test_d12_a_deadline_that_passed_while_no_operator_ran_ends_the_retention() -> None:
    """After the restore the positions are dropped, and a return starts like a new cluster."""
    both, only_c = kafka_source("c", "d", retention=HOUR), kafka_source("c", retention=HOUR)
    stage = two_clusters(source=both).running()
    stage.source_changes(only_c).adopts()

    stage.operator.now += HOUR + 0.001
    stage.operator_starts().discovers().adopts()
    assert stage.assignment.retained == frozenset()

    stage.source_changes(both).discovers()
    assert {p for s, p in stage.positions().items() if s[0] == "d"} == {0}


@pytest.mark.scenario("D13", "K8")
def test_d13_without_retention_a_removed_cluster_is_dropped_at_once() -> None:
    """Its positions are dropped once the hosts have let go of it, and it is asked no more."""
    stage = two_clusters(source=BOTH).running()

    stage.source_changes(ONLY_C).adopts().discovers().looks_again(3).adopts()
    assert set(stage.owners) == set(splits("t", 3))
    assert {call.call.scope for call in stage.operator.calls} == {"c"}

    stage.source_changes(BOTH).discovers()
    assert stage.assignment.retained == frozenset()
    assert {p for s, p in stage.positions().items() if s[0] == "d"} == {0}
    stage.more(-10).adopts()
    assert {p for host in range(3) for s, p in stage.read(host).items() if s[0] == "d"} == {0}


@pytest.mark.scenario("D14")
def test_d14_a_restart_from_the_checkpoint_assigns_nothing() -> None:
    """Three readers that run on see no change."""
    stage = two_clusters().running()

    assert stage.watch(lambda: stage.operator_starts().discovers()) == [stage.assignment]


@pytest.mark.scenario("D15")
def test_d15_settings_that_changed_while_no_operator_ran_reach_the_readers() -> None:
    """They are published under a new epoch, which readers adopt; no split moves.

    Upstream keeps the servers of the checkpoint and takes other settings again; ours all come from
    the spec.
    """
    stage = two_clusters(source=ONLY_C).running()
    before, owners = stage.epoch, stage.owners
    moved = KafkaCluster(
        name="c", bootstrap_servers="elsewhere:1", properties={"fetch.max.bytes": "1"}
    )

    stage.operator_starts(kafka_source(clusters=(moved,)))

    assert (stage.epoch, stage.owners) == (before + 1, owners)
    assert stage.assignment.settings["kafka"]["clusters"]["c"]["bootstrapServers"] == "elsewhere:1"
    assert stage.watch(stage.operator_starts) == [stage.assignment]


@pytest.mark.scenario("D16", "X10")
def test_d16_clusters_that_changed_while_no_operator_ran() -> None:
    """What is not wanted leaves at the restart, what is new is assigned, the rest stays."""
    stage = two_clusters().topic("t", 3, cluster="e").running()
    stay = {s: o for s, o in stage.owners.items() if s[0] == "c"}

    stage.operator_starts(kafka_source("c", "e")).discovers().adopts()

    assert {s[0] for s in stage.owners} == {"c", "e"}
    assert {s: stage.owners[s] for s in stay} == stay
    assert "SplitsRemoved" in stage.facts


@pytest.mark.scenario("X10")
@pytest.mark.parametrize("readers_too", [True, False])
def test_x10_a_topic_that_was_unsubscribed_while_no_operator_ran_is_not_read(
    readers_too: bool,
) -> None:
    """It leaves at the restart, without waiting for a broker; also where the readers report it."""
    stage = Stage(readers=2, source=ONLY_C).topic("t", 4).topic("gone", 4).running()
    if readers_too:
        stage.fails(0).fails(1)

    stage.operator_starts(kafka_source("c", subscriber=TopicList(("t",))))
    if readers_too:
        stage.all_register()

    assert set(stage.owners) == set(splits("t", 4))
    stage.discovers().adopts()
    assert {s[1] for host in (0, 1) for s in stage.read(host)} == {"t"}


@pytest.mark.scenario("D17")
def test_d17_a_removal_is_published_at_once() -> None:
    """In the same step as the change of the source, whatever the cluster's clients do."""
    stage = two_clusters().running()

    documents = stage.watch(lambda: stage.source_changes(ONLY_C))

    assert [{s[0] for s in document.owners} for document in documents] == [{"c"}]
    assert set(documents[0].settings["kafka"]["clusters"]) == {"c"}


@pytest.mark.hosts_apart
@pytest.mark.scenario("D20")
def test_d20_two_of_three_fail_and_return() -> None:
    """Nothing happens while they are away; each comes back to exactly its splits."""
    stage = two_clusters().running()
    before = [stage.given(reader) for reader in range(3)]

    epoch = stage.fails(0).fails(2).epoch
    assert (stage.epoch, stage.given(1)) == (epoch, before[1])

    stage.registers(0).registers(2)
    assert [stage.given(reader) for reader in range(3)] == before


@pytest.mark.scenario("D21")
def test_d21_balance_is_over_all_clusters() -> None:
    """Six splits on two readers are three each; a balance per cluster would give 4 and 2."""
    assert two_clusters(readers=2).running().loads == [3, 3]


@pytest.mark.scenario("D22")
def test_d22_growth_over_clusters_is_balanced() -> None:
    """From 3 to 18 splits on 4 readers.

    All assigned, evenly, in total as well as among the new ones.
    """
    stage = Stage(readers=4, source=ONLY_C).topic("t", 3).running()
    old = stage.owners

    stage.topic("u", 6).topic("t", 3, cluster="d").topic("u", 6, cluster="d").source_changes(BOTH)
    stage.discovers().looks_again()

    assert len(stage.owners) == 18
    assert stage.spread <= 1
    assert {s: stage.owners[s] for s in old} == old


@pytest.mark.scenario("D23")
def test_d23_shrink_restore_and_grow_again() -> None:
    """Eight readers: 14 splits, 3 remain without a move, 11 new ones fill up the idle readers."""
    stage = (
        Stage(readers=8, source=BOTH)
        .topic("t", 3)
        .topic("u", 4)
        .topic("t", 7, cluster="d")
        .running()
    )
    stage.topic_deleted("u").topic_deleted("t", cluster="d").looks_again(2).adopts()
    left = stage.owners
    assert len(left) == 3
    assert stage.loads.count(0) >= 5

    stage.operator_starts().topic("u", 4).topic("t", 7, cluster="d").discovers()

    assert len(stage.owners) == 14
    assert {s: stage.owners[s] for s in left} == left
    assert stage.spread <= 1


@pytest.mark.scenario("D25")
def test_d25_shrink_restore_at_another_parallelism_and_grow() -> None:
    """13 splits on 5 readers, 10 remain, 8 readers, 3 more splits.

    Balanced after each change that may move splits.
    """
    stage = (
        Stage(readers=5, hosts=1, source=BOTH).topic("t", 10).topic("u", 3, cluster="d").running()
    )
    stage.topic_deleted("u", cluster="d").looks_again(2).adopts()
    assert len(stage.owners) == 10

    stage.operator_starts().rescales(8).discovers().adopts()
    assert sorted(stage.loads) == [1, 1, 1, 1, 1, 1, 2, 2]

    stage.topic("u", 3, cluster="d").looks_again()
    assert len(stage.owners) == 13
    assert stage.spread <= 1


@pytest.mark.scenario("D27")
def test_d27_an_unknown_strategy_is_refused() -> None:
    """The error names the field and the values that are possible."""
    with pytest.raises(InvalidSpecError, match=r"assignment\.strategy.*RoundRobin.*Hash"):
        make_spec(assignment={"strategy": "Nearest"})


@pytest.mark.scenario("D28")
def test_d28_splits_of_a_removed_cluster_that_come_back_are_ignored() -> None:
    """A reader that reports them gets nothing of them; a fact tells that they are gone."""
    stage = two_clusters().running()
    stage.fails(0).fails(1).fails(2)

    stage.source_changes(ONLY_C).all_register().discovers().adopts()

    assert {s[0] for s in stage.owners} == {"c"}
    assert all({s[0] for s in stage.read(host)} <= {"c"} for host in range(3))
    assert "SplitsRemoved" in stage.facts


@pytest.mark.parametrize("when", ["running", "away"])
def test_another_strategy_takes_effect_live_and_after_a_restart_alike(when: str) -> None:
    """The owners are those of the new strategy, once discovery has spoken."""
    stage = (
        Stage(readers=3, source=kafka_source("c", assigner=HashAssigner()))
        .topic("topic", 10)
        .topic("u", 10)
    )
    stage.running()
    by_hash = stage.owners
    changed = kafka_source("c", assigner=RoundRobinAssigner())

    if when == "running":
        stage.source_changes(changed)
    else:
        stage.operator_starts(changed)
    stage.discovers().adopts().adopts()
    assert stage.spread <= 1

    stage.operator_starts(kafka_source("c", assigner=HashAssigner())).discovers().adopts().adopts()
    assert stage.owners == by_hash


def test_a_topic_that_is_added_to_a_source_that_had_ended_withdraws_the_end() -> None:
    """Readers are not told the end while splits may come.

    They are told again when all are known.
    """
    stage = (
        Stage(readers=2, source=bounded_source("c", subscriber=TopicList(("t",))))
        .topic("t", 2)
        .topic("u", 2)
    )
    stage.running()
    assert stage.told_no_more == {0, 1}

    stage.source_changes(bounded_source("c", subscriber=TopicList(("t", "u"))))
    assert stage.told_no_more == set()

    stage.discovers()
    assert len(stage.owners) == 4
    assert stage.told_no_more == {0, 1}
