"""After the state was lost.

Positions of clusters and topics that are not read now, which only readers know.
"""

from typing import Any

import pytest

from balanced_source.connectors.discovery import Discover, Initialize
from balanced_source.connectors.kafka import (
    EARLIEST,
    LATEST,
    KafkaSource,
    OffsetsInitializer,
    TopicList,
)
from support.stage import Stage, splits
from support.world import kafka_source

T, U, D = splits("t", 2), splits("u", 2), splits("t", 2, cluster="d")


def source(*clusters: str, topics: tuple[str, ...] = ("t", "u"), **changes: Any) -> KafkaSource:
    return kafka_source(*clusters, subscriber=TopicList(topics), **{"retention": 3600.0, **changes})


def running(first: KafkaSource) -> Stage:
    stage = Stage(readers=2, hosts=1, source=first)
    for cluster in "cd":
        stage.topic("t", 2, cluster=cluster, end=10).topic("u", 2, cluster=cluster, end=10)
    return stage.running().more(5).adopts()


def loses_state(stage: Stage, how: str) -> Stage:
    """The state alone, or the resource with all of its documents; the Spark checkpoint stays."""
    stage.store.state = None
    if how == "resource":
        stage.store.assignment = None
        stage.store.reports.clear()
    stage.operator_starts().discovers()
    if how == "resource":
        stage.registers(0)
    return stage.adopts().discovers().adopts()


def delivered(stage: Stage, *split_ids: Any) -> set[int]:
    """Offsets of splits, of which each was delivered once.

    The sink of the stage refuses a second time.
    """
    found = {
        split_id: {o for s, o in stage.drivers["0"].delivered if s == split_id}
        for split_id in split_ids
    }
    offsets = found[split_ids[0]]
    assert all(other == offsets for other in found.values()), f"not the same of each: {found}"
    return offsets


@pytest.mark.parametrize("how", ["state", "resource"])
@pytest.mark.parametrize("starts", [EARLIEST, LATEST])
def test_a_returning_cluster_continues_at_its_positions(
    how: str, starts: OffsetsInitializer
) -> None:
    both, one = source("c", "d", starting_offsets=starts), source("c", starting_offsets=starts)
    stage = running(both).source_changes(one).adopts().more(5)
    first = 0 if starts == EARLIEST else 10
    assert delivered(stage, *D) == set(range(first, 15))

    loses_state(stage, how)
    assert {s: p for s, p in stage.kept(0).items() if s in D} == dict.fromkeys(D, 15)
    stage.more(5).source_changes(both).discovers().adopts()

    assert delivered(stage, *D) == set(range(first, 25))


@pytest.mark.parametrize("how", ["state", "resource"])
@pytest.mark.parametrize("starts", [EARLIEST, LATEST])
def test_a_returning_topic_continues_at_its_positions(how: str, starts: OffsetsInitializer) -> None:
    both, one = (
        source("c", starting_offsets=starts),
        source("c", topics=("t",), starting_offsets=starts),
    )
    stage = running(both).source_changes(one).adopts()
    first = 0 if starts == EARLIEST else 10

    loses_state(stage, how).more(5).source_changes(both).discovers().adopts()

    assert delivered(stage, *U) == set(range(first, 20))


@pytest.mark.parametrize("how", ["state", "resource"])
def test_partitions_made_while_the_cluster_was_inactive_start_at_their_beginning(how: str) -> None:
    both, one = source("c", "d", starting_offsets=LATEST), source("c", starting_offsets=LATEST)
    stage = running(both).source_changes(one).adopts()

    loses_state(stage, how).topic("t", 3, cluster="d", end=4).source_changes(
        both
    ).discovers().adopts()

    assert delivered(stage, ("d", "t", 2)) == set(range(4))


@pytest.mark.parametrize("how", ["state", "resource"])
def test_positions_read_until_the_state_was_lost_are_also_kept(how: str) -> None:
    """The cluster is taken out while there is no state."""
    both, one = source("c", "d"), source("c")
    stage = running(both)
    stage.operator.source = one

    loses_state(stage, how).more(5).source_changes(both).discovers().adopts()

    assert delivered(stage, *D) == set(range(20))


def test_positions_are_kept_until_the_deadline() -> None:
    both, one = source("c", "d"), source("c")
    stage = loses_state(running(both).source_changes(one).adopts(), "state")

    stage.operator.now += 3601
    stage.looks_again().adopts()

    assert "RetentionEnded" in stage.facts
    assert not stage.kept(0).keys() & set(D)


def test_without_retention_nothing_is_kept() -> None:
    both, one = source("c", "d", retention=0.0), source("c", retention=0.0)
    stage = running(both)
    stage.operator.source = one

    loses_state(stage, "state")

    assert not stage.kept(0).keys() & set(D)
    assert not stage.operator.coordinator.enumerator.state.retained


@pytest.mark.parametrize("is_taken_back", [False, True])
@pytest.mark.parametrize("answered", [0, 1, 2])
@pytest.mark.parametrize("how", ["state", "resource"])
def test_partitions_made_while_there_was_no_state_start_at_their_beginning(
    how: str, answered: int, *, is_taken_back: bool
) -> None:
    """Also if their start was looked up, as Latest, before readers told that they had read it.

    And if they are taken from a reader that there is no more, and wait for another look.
    """
    only = source("c", starting_offsets=LATEST)
    stage = running(only)
    stage.store.state = None
    if how == "resource":
        stage.store.assignment = None
        stage.store.reports.clear()
    stage.topic("t", 4, end=4).operator_starts()
    for call in [Discover, Initialize][:answered]:
        stage.answers(call)
    if is_taken_back:
        stage.operator_starts().rescales(1)
    if how == "resource":
        stage.registers(0)

    stage.adopts().discovers().adopts()

    assert delivered(stage, ("c", "t", 2), ("c", "t", 3)) == set(range(4))
    assert delivered(stage, *T) == set(range(10, 15))


@pytest.mark.parametrize("restarts", [False, True])
def test_a_cluster_that_returns_after_the_deadline_is_new(*, restarts: bool) -> None:
    """It starts at Latest, whether the operator was restarted meanwhile or not."""
    both, one = source("c", "d", starting_offsets=LATEST), source("c", starting_offsets=LATEST)
    stage = running(both).source_changes(one).adopts()
    stage.operator.now += 3601
    stage.looks_again().adopts().more(5)
    if restarts:
        stage.operator_starts().discovers()

    stage.source_changes(both).discovers().adopts()

    assert {s: stage.positions()[s] for s in D} == dict.fromkeys(D, 20)
    assert delivered(stage, *D) == set(range(10, 15))
