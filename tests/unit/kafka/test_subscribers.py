"""Which partitions are wanted, given what a cluster lists."""

import pytest

from balanced_source.connectors.kafka import PartitionSet, TopicList, TopicPattern
from support.world import kafka_source

LISTED = {
    "orders": frozenset({0, 1}),
    "orders-dlq": frozenset({0}),
    "__consumer_offsets": frozenset({0}),
}


@pytest.mark.scenario("I9")
def test_a_partition_set_is_used_exactly_as_given() -> None:
    """Partition 2^31−1 does not exist, which is told; the others are read."""
    wanted = PartitionSet(frozenset({("orders", 1), ("orders", 2**31 - 1)}))

    found = wanted.select("c", LISTED)

    assert found.split_ids == {("c", "orders", 1)}
    assert "orders/2147483647 does not exist on cluster c" in str(found.problem)


@pytest.mark.scenario("I7")
def test_a_list_is_all_partitions_of_its_topics_and_names_what_is_missing() -> None:
    """Upstream fails with UnknownTopicOrPartition; here the others are read and people are told."""
    found = TopicList(("orders", "nope")).select("c", LISTED)

    assert found.split_ids == {("c", "orders", 0), ("c", "orders", 1)}
    assert "topic nope does not exist" in str(found.problem)


@pytest.mark.scenario("I8")
def test_a_pattern_is_of_whole_names_and_never_of_internal_topics() -> None:
    """Only the topics that match; what is excluded is left out."""
    assert TopicPattern("orders").select("c", LISTED).split_ids == {
        ("c", "orders", 0),
        ("c", "orders", 1),
    }
    assert {s[1] for s in TopicPattern(".*").select("c", LISTED).split_ids} == {
        "orders",
        "orders-dlq",
    }
    assert {s[1] for s in TopicPattern(".*", ".*-dlq").select("c", LISTED).split_ids} == {"orders"}
    nothing = TopicPattern("x.*", "y").select("c", LISTED)
    assert "matches topicPattern 'x.*'" in str(nothing.problem)
    assert "excludePattern 'y'" in str(nothing.problem)


def test_only_the_named_topics_are_asked_for() -> None:
    """A user may have the right to describe these topics only."""
    partitions = PartitionSet(frozenset({("b", 1), ("a", 0), ("b", 0)}))

    assert partitions.topics == ("a", "b")
    assert TopicList(("b", "a")).topics == ("b", "a")
    assert TopicPattern(".*").topics is None


def test_what_may_exist_is_not_reported_as_missing() -> None:
    """A broker says nothing about topics that the user may not describe."""
    partitions = PartitionSet(frozenset({("hidden", 0), ("orders", 0), ("orders", 7)}))

    assert partitions.select("c", LISTED, refused=["hidden"]).problem is not None
    assert "hidden" not in str(partitions.select("c", LISTED, refused=["hidden"]).problem)
    assert "partitions hidden/0, orders/7 do not exist" in str(
        partitions.select("c", LISTED).problem
    )
    assert TopicList(("hidden",)).select("c", LISTED, refused=["hidden"]).problem is None
    assert TopicPattern("x.*").select("c", LISTED, refused=["hidden"]).problem is None


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        ("a", "topic a does not exist on cluster c: create it, or"),
        ("cabed", "topics a, b, c, d, e do not exist on cluster c: create them, or"),
        ("gfcabed", "topics a, b, c, d, e and 2 more do not exist"),
    ],
)
def test_the_first_five_missing_topics_are_named(names: str, shown: str) -> None:
    problem = TopicList(tuple(names)).select("c", {}).problem

    assert shown in str(problem)
    assert problem is not None
    assert problem.is_hopeless


@pytest.mark.parametrize(
    ("topic", "is_wanted"),
    [("orders", True), ("orders-dlq", False), ("__consumer_offsets", False), ("x", False)],
)
def test_a_pattern_subscribes_to_what_matches_and_is_not_excluded(
    topic: str, is_wanted: bool
) -> None:
    assert TopicPattern("orders.*|__.*", ".*-dlq").subscribes(topic, 0) == is_wanted


@pytest.mark.scenario("H4", "H5")
def test_the_reader_settings_name_a_group_only_if_there_is_one() -> None:
    """Without one nothing is ever committed.

    Positions that are committed are real offsets, never sentinels.
    """
    assert "commitGroup" not in kafka_source("c").reader_settings()["kafka"]
    assert kafka_source("c", commit_group="g").reader_settings()["kafka"]["commitGroup"] == "g"


def test_partitions_of_many_topics_are_asked_for_and_named_in_their_order() -> None:
    """Every process asks the same, whatever the order of a set is."""
    wanted = PartitionSet(frozenset((f"t{number:02}", 7) for number in range(30)))

    assert wanted.topics == tuple(f"t{number:02}" for number in range(30))
    assert "partitions t00/7, t01/7, t02/7, t03/7, t04/7 and 25 more do not exist" in str(
        wanted.select("c", {}).problem
    )
