"""The subscription changes while the query runs: nothing restarts, and no position is lost."""

from typing import Any

from balanced_source.api import SplitId
from balanced_source.connectors.kafka import (
    LATEST,
    KafkaSource,
    KafkaSubscriber,
    PartitionSet,
    TopicList,
    TopicPattern,
)
from support.stage import Stage, splits
from support.world import kafka_source

A, B = splits("a", 2), splits("b", 2)


def source(subscriber: KafkaSubscriber, **changes: Any) -> KafkaSource:
    return kafka_source("c", subscriber=subscriber, **{"retention": 3600.0, **changes})


def running(subscriber: KafkaSubscriber, **changes: Any) -> Stage:
    stage = Stage(readers=2, hosts=1, source=source(subscriber, **changes))
    return stage.topic("a", 2, end=10).topic("b", 2, end=10).running().adopts()


def delivered(stage: Stage, split_id: SplitId) -> list[int]:
    return sorted(offset for split, offset in stage.drivers["0"].delivered if split == split_id)


def test_an_added_topic_starts_at_its_earliest_offset_and_the_others_continue() -> None:
    """Even if the source started at the latest offsets.

    What is there belongs to the topic that was asked for.
    """
    stage = running(TopicList(("a",)), starting_offsets=LATEST).more(5).adopts()
    assert delivered(stage, A[0]) == list(range(10, 15))

    stage.source_changes(
        source(TopicList(("a", "b")), starting_offsets=LATEST)
    ).discovers().adopts()

    assert delivered(stage, B[0]) == list(range(15))
    assert delivered(stage, A[0]) == list(range(10, 15))


def test_a_returning_topic_continues_at_its_positions() -> None:
    stage = running(TopicList(("a", "b")))

    stage.source_changes(source(TopicList(("a",)))).adopts().more(5).adopts()
    assert (stage.owners.keys(), delivered(stage, B[1])) == (set(A), list(range(10)))
    stage.source_changes(source(TopicList(("a", "b")))).discovers().adopts()

    assert delivered(stage, B[1]) == list(range(15))


def test_after_the_retention_a_topic_that_returns_is_new() -> None:
    stage = running(TopicList(("a", "b")), retention=100.0)

    stage.source_changes(source(TopicList(("a",)), retention=100.0)).adopts()
    stage.operator.now += 101
    stage.looks_again().adopts()
    assert "RetentionEnded" in stage.facts
    stage.source_changes(source(TopicList(("a", "b")), retention=100.0)).discovers()

    assert {stage.assignment.starts[s] for s in B} == {0}


def test_another_kind_of_choice_over_the_same_partitions_moves_nothing() -> None:
    stage = running(TopicList(("a", "b")))
    before, epoch = stage.owners, stage.epoch

    for choice in (
        TopicPattern("[ab]"),
        PartitionSet(frozenset((str(s[1]), int(s[2])) for s in A + B)),
    ):
        stage.source_changes(source(choice)).discovers().adopts()

    assert (stage.owners, stage.epoch) == (before, epoch)


def test_excluded_topics_leave_and_newly_matching_ones_join() -> None:
    stage = running(TopicPattern(".*"))

    stage.source_changes(source(TopicPattern(".*", "b"))).discovers().adopts()
    assert stage.owners.keys() == set(A)
    stage.topic("aa", 1, end=3).looks_again().adopts()

    assert stage.owners.keys() == {*A, ("c", "aa", 0)}
    assert delivered(stage, ("c", "aa", 0)) == [0, 1, 2]
    assert stage.spread <= 1


def test_single_partitions_can_leave_and_come() -> None:
    stage = running(PartitionSet(frozenset({("a", 0), ("a", 1)})))

    stage.source_changes(source(PartitionSet(frozenset({("a", 1), ("b", 0)})))).discovers().adopts()

    assert stage.owners.keys() == {A[1], B[0]}
    assert delivered(stage, B[0]) == list(range(10))
