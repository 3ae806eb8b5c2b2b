"""What a Kafka source asks for its clusters, and what it says of records that are gone."""

from dataclasses import replace
from typing import Any

import pytest

from balanced_source.api import Boundedness, SplitId
from balanced_source.connectors.kafka import EARLIEST, LATEST, KafkaPartitionSplit, TopicList
from balanced_source.connectors.kafka.data_loss import LISTED
from balanced_source.connectors.kafka.source import KafkaSource
from support.world import kafka_source


def split(topic: str, offset: int, partition: int = 0) -> KafkaPartitionSplit:
    return KafkaPartitionSplit(cluster="c", topic=topic, partition=partition, offset=offset)


def with_cluster(source: KafkaSource, **changes: Any) -> KafkaSource:
    return replace(source, clusters=(replace(source.clusters[0], **changes),))


@pytest.mark.parametrize("is_first", [True, False])
def test_the_start_of_a_cluster_counts_for_its_first_discovery(*, is_first: bool) -> None:
    """A later partition is read from its beginning."""
    source = kafka_source(starting_offsets=LATEST)
    own = with_cluster(kafka_source(starting_offsets=EARLIEST), starting_offsets=LATEST)
    ids: tuple[SplitId, ...] = (("c", "t", 0),)

    for one in (source, own):
        call = one.initialize("c", ids, is_first=is_first)
        assert call.starting_offsets == (LATEST if is_first else EARLIEST)
        assert (call.split_ids, call.stopping_offsets) == (ids, None)


def test_the_end_of_a_cluster_wins_over_that_of_the_source() -> None:
    ids: tuple[SplitId, ...] = (("c", "t", 0),)
    ending = kafka_source(stopping_offsets=LATEST)
    own = with_cluster(ending, stopping_offsets=EARLIEST)

    assert ending.initialize("c", ids, is_first=False).stopping_offsets == LATEST
    assert own.initialize("c", ids, is_first=False).stopping_offsets == EARLIEST


def test_a_source_ends_if_every_cluster_does() -> None:
    unbounded, bounded = Boundedness.CONTINUOUS_UNBOUNDED, Boundedness.BOUNDED
    two = kafka_source("c", "d")
    one_ends = (replace(two.clusters[0], stopping_offsets=LATEST), two.clusters[1])

    assert two.boundedness is unbounded
    assert replace(two, clusters=one_ends).boundedness is unbounded
    assert replace(two, clusters=one_ends[:1]).boundedness is bounded
    assert replace(two, clusters=()).boundedness is unbounded
    assert replace(two, clusters=(), stopping_offsets=LATEST).boundedness is bounded
    assert replace(two, stopping_offsets=LATEST).discovery_interval is None


def test_a_cluster_with_a_subscription_of_its_own_ignores_that_of_the_source() -> None:
    source = with_cluster(kafka_source(), subscriber=TopicList(("t",)))

    assert source.subscribes(("c", "t", 0))
    assert not source.subscribes(("c", "u", 0))
    assert not source.subscribes(("d", "t", 0))
    assert source.discover("c", 3).subscriber == TopicList(("t",))


def test_commits_outside_their_logs_are_named() -> None:
    splits = [
        replace(split("t", 20), void_commit=5),
        replace(split("t", 10, 1), void_commit=23),
        split("t", 7, 2),
    ]

    overtaken, ahead = kafka_source().begun_elsewhere(splits)

    assert "Records in between are not read: partition 0 from offset 5 to 19." in overtaken
    assert "partition 1 has 23 and starts at 10" in ahead
    assert "partition 2" not in overtaken + ahead
    assert kafka_source().begun_elsewhere(splits[2:]) == []


@pytest.mark.parametrize("more", [0, 1, 4])
def test_the_first_topics_with_lost_records_are_named_and_the_others_counted(more: int) -> None:
    splits = [split(f"t{number:02}", 5) for number in reversed(range(LISTED + more))]

    gone = kafka_source().unread(splits, exists=False)
    late = kafka_source().begun_late([*splits, split("whole", 0)])

    for texts, word in ((gone, "deleted"), (late, "did not begin at offset 0")):
        assert len(texts) == LISTED + bool(more)
        assert ["t00" in texts[0], "t01" in texts[1]] == [True, True]
        if more:
            assert texts[-1].startswith("1 more topic " if more == 1 else f"{more} more topics ")
            assert word in texts[-1]
