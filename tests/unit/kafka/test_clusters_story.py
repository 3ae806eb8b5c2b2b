"""Seven readers and clusters that come and go.

Upstream's example for its global mode, with our exact owners.

The documented rule (docs/subscription-changes.md): a split goes to the reader that has fewest; what
stays keeps its owner; only a rescale (or a request) moves splits, and then the fewest that reach
max − min ≤ 1. Upstream's example ends this story at a difference of 3, because its next owner is a
count modulo parallelism.
"""

from collections.abc import Sequence
from itertools import permutations

import pytest

from balanced_source.assigners import (
    HashAssigner,
    PerScopeAssigner,
    RoundRobinAssigner,
    SplitAssigner,
)
from balanced_source.connectors.kafka import KafkaSource
from support.owner_table import imbalance, rows
from support.stage import Stage
from support.world import kafka_source

TOPIC = "example-topic"


def source(*numbers: int, assigner: SplitAssigner | None = None) -> KafkaSource:
    names = [f"local-{number}" for number in numbers]
    return kafka_source(*names, assigner=assigner or RoundRobinAssigner(), retention=3600.0)


def stage_with(*numbers: int, assigner: SplitAssigner | None = None) -> Stage:
    stage = Stage(readers=7, hosts=1, source=source(*numbers, assigner=assigner))
    for number in range(4):
        stage.topic(TOPIC, 4, cluster=f"local-{number}")
    return stage.running()


def look(stage: Stage) -> tuple[tuple[str, ...], int]:
    parallelism = stage.state.parallelism
    return rows(stage.owners, parallelism), imbalance(stage.owners, parallelism)


@pytest.mark.scenario("C4", "D23")
def test_the_story_step_by_step() -> None:
    """Counts differ by one at most wherever splits that stay allow it.

    Upstream's drift to a difference of 3.
    """
    stage = stage_with(0, 1, 2)
    three = ("0/0 1/3", "0/1 2/0", "0/2 2/1", "0/3 2/2", "1/0 2/3", "1/1", "1/2")
    assert look(stage) == (three, 1)

    stage.source_changes(source(0, 1, 2, 3)).discovers().adopts()
    four = ("0/0 1/3 3/2", "0/1 2/0 3/3", "0/2 2/1", "0/3 2/2", "1/0 2/3", "1/1 3/0", "1/2 3/1")
    assert look(stage) == (four, 1)

    stage.source_changes(source(0, 1, 3)).discovers().adopts()
    holes = ("0/0 1/3 3/2", "0/1 3/3", "0/2", "0/3", "1/0", "1/1 3/0", "1/2 3/1")
    assert look(stage) == (holes, 2)

    stage.source_changes(source(0, 1, 2, 3)).discovers().adopts()
    filled = ("0/0 1/3 3/2", "0/1 2/3 3/3", "0/2 2/0", "0/3 2/1", "1/0 2/2", "1/1 3/0", "1/2 3/1")
    assert look(stage) == (filled, 1)

    before = stage.owners
    stage.rescales(5).adopts()
    five = ("0/0 1/3 3/1 3/2", "0/1 2/3 3/3", "0/2 1/1 2/0", "0/3 1/2 2/1", "1/0 2/2 3/0")
    assert look(stage) == (five, 1)
    moved = {s for s, owner in stage.owners.items() if before[s] != owner}
    assert moved == {s for s, owner in before.items() if owner >= 5}, (
        "only splits of readers that are no more"
    )


@pytest.mark.scenario("D12")
def test_the_cluster_that_returns_continues_at_its_positions() -> None:
    """Records that were produced meanwhile are read, those read before are not read again."""
    stage = stage_with(0, 1, 2).more(10).adopts()
    returning = {(f"local-{2}", TOPIC, p) for p in range(4)}
    left_at = {s: stage.positions()[s] for s in returning}

    stage.source_changes(source(0, 1)).discovers().adopts().more(5)
    stage.source_changes(source(0, 1, 2)).discovers().adopts()

    assert {s: stage.assignment.starts.get(s, left_at[s]) for s in returning} == left_at
    delivered = stage.drivers["0"].delivered
    assert {offset for split, offset in delivered if split in returning} == set(range(25))


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_the_order_in_which_clusters_answer_changes_no_count(order: tuple[int, ...]) -> None:
    """One cluster answers after the other, in any order."""
    stage = Stage(readers=7, hosts=1, source=source(0, 1, 2))
    for number in range(3):
        stage.topic(TOPIC, 4, cluster=f"local-{number}")
    stage.cluster_down("local-0", "local-1", "local-2").operator_starts().discovers().all_register()

    for number in order:
        stage.broker.down.discard(f"local-{number}")
        stage.looks_again()
        assert imbalance(stage.owners, 7) <= 1
    stage.looks_again(8)

    assert (len(stage.owners), imbalance(stage.owners, 7)) == (12, 1)


@pytest.mark.scenario("E3")
@pytest.mark.parametrize("inner", [HashAssigner(), RoundRobinAssigner()])
def test_the_per_cluster_mode_piles_up_on_the_same_readers(inner: SplitAssigner) -> None:
    """Every cluster is dealt alone, so partition p of each meets on one reader.

    Three of seven stay idle.
    """
    stage = stage_with(0, 1, 2, assigner=PerScopeAssigner(inner))

    assert sorted(stage.loads) == [0, 0, 0, 3, 3, 3, 3]
    stage.source_changes(source(0, 1, 2, 3, assigner=PerScopeAssigner(inner))).discovers().adopts()
    assert stage.spread == 4
    per_reader = [{s[2] for s in stage.owned(reader)} for reader in range(7)]
    assert all(len(partitions) <= 1 for partitions in per_reader)


PER_CLUSTER_OF_SEVEN = {0: 2, 1: 3, 5: 0, 6: 1}
"""Reader → partition of each cluster.

A JVM says 101301004 of ``"example-topic".hashCode()``: start at reader 5.
"""

PER_CLUSTER_OF_FIVE = {1: 0, 2: 1, 3: 2, 4: 3}


def per_cluster_rows(clusters: Sequence[int], parallelism: int = 7) -> tuple[str, ...]:
    dealt = PER_CLUSTER_OF_SEVEN if parallelism == 7 else PER_CLUSTER_OF_FIVE
    return tuple(
        " ".join(f"{c}/{dealt[r]}" for c in clusters) if r in dealt else ""
        for r in range(parallelism)
    )


@pytest.mark.scenario("C4", "D23")
def test_the_story_in_the_per_cluster_mode() -> None:
    """Flink's default owners at each step: four of seven readers have everything.

    A rescale moves every split.

    Upstream's printed example starts at reader 2; its own owner function, asked on a JVM, starts at
    reader 5.
    """
    assigner = PerScopeAssigner(HashAssigner())
    stage = stage_with(0, 1, 2, assigner=assigner)
    assert look(stage) == (
        ("0/2 1/2 2/2", "0/3 1/3 2/3", "", "", "", "0/0 1/0 2/0", "0/1 1/1 2/1"),
        3,
    )

    for clusters, spread in (((0, 1, 2, 3), 4), ((0, 1, 3), 3), ((0, 1, 2, 3), 4)):
        stage.source_changes(source(*clusters, assigner=assigner)).discovers().adopts()
        assert look(stage) == (per_cluster_rows(clusters), spread)

    before = stage.owners
    stage.rescales(5).adopts()
    assert look(stage) == (per_cluster_rows((0, 1, 2, 3), parallelism=5), 4)
    assert all(stage.owners[s] != owner for s, owner in before.items())
