"""What is asked of a cluster to resolve offsets, and what an error says of several partitions."""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

import pytest

from balanced_source.api import SplitId, SwitchPosition
from balanced_source.connectors.kafka import (
    EARLIEST,
    Anchor,
    AtOffset,
    FromCommit,
    FromTime,
    KafkaPartitionSplit,
    KafkaSource,
    OnDataLoss,
    PerPartition,
    TopicList,
    resolve_start,
    resolve_stop,
)
from balanced_source.errors import RefusedDiscoveryError
from support.kafka_lookup import FakeLookup, Log
from support.world import kafka_source

A0, A1, B0 = ("c", "a", 0), ("c", "a", 1), ("c", "b", 0)
LOGS = {s: Log(first=3, times=(1000, 2000)) for s in (A0, A1, B0)}


@dataclass
class AskedLookup(FakeLookup):
    """Notes the partitions whose ends are asked for."""

    asked: list[tuple[Anchor, frozenset[SplitId]]] = field(default_factory=list)

    def ends(self, split_ids: Collection[SplitId], anchor: Anchor) -> dict[SplitId, int]:
        if split_ids:
            self.asked.append((anchor, frozenset(split_ids)))
        return super().ends(split_ids, anchor)


def test_ends_are_asked_for_only_where_a_start_is_compared_with_them() -> None:
    """They cost requests."""
    first, last = Anchor.EARLIEST, Anchor.LATEST
    earliest, by_time, exact = (AskedLookup(LOGS) for _ in range(3))

    resolve_start(EARLIEST, [A0, A1], earliest)
    resolve_start(FromTime(1500, Anchor.EARLIEST), [A0, A1], by_time)
    mixed = PerPartition(listed={("a", 1): AtOffset(4)}, default=FromTime(1500))
    resolve_start(mixed, [A0, A1], exact)

    assert earliest.asked == [(first, {A0, A1})]
    assert by_time.asked == [], "each has a record of that time"
    assert exact.asked == [(first, {A1}), (last, {A1}), (last, {A0})]


def test_a_stop_asks_for_ends_only_where_no_record_of_its_time_may_come() -> None:
    by_time, else_refused = AskedLookup(LOGS), AskedLookup(LOGS)

    resolve_stop(FromTime(1500), [A0], by_time)
    resolve_stop(FromTime(1500, None), [A0], else_refused)

    assert by_time.asked == [(Anchor.LATEST, {A0})]
    assert else_refused.asked == []


@pytest.mark.parametrize("split_ids", [(A0, A1, B0), (B0, A1, A0), (A1, B0, A0)])
def test_partitions_without_an_answer_are_named_in_their_order(
    split_ids: tuple[SplitId, ...],
) -> None:
    with pytest.raises(RefusedDiscoveryError, match="for c/a/0, c/a/1, c/b/0, and no reset"):
        resolve_start(FromCommit("g"), split_ids, FakeLookup(LOGS))


def behind(loss: OnDataLoss = OnDataLoss.FAIL, **position: Any) -> KafkaSource:
    return kafka_source(on_data_loss=loss).starting_after(SwitchPosition(**position))


@pytest.mark.parametrize("split_ids", [(A0, B0), (B0, A0)])
def test_the_first_of_several_recreated_topics_decides_what_is_said(
    split_ids: tuple[SplitId, ...],
) -> None:
    """Topic a did not exist when the history was begun; topic b was another one."""
    offsets = {("a", 0): 4, ("b", 0): 4}
    source = behind(offsets=offsets, meanings={"c": {"a": "", "b": "old"}})
    other = behind(offsets=offsets, meanings={"c": {"a": "old", "b": ""}})
    ids = {"a": "new", "b": "new"}

    with pytest.raises(RefusedDiscoveryError, match="topic a of cluster c did not exist"):
        resolve_start(source.starting_offsets, split_ids, FakeLookup(LOGS), ids)
    with pytest.raises(RefusedDiscoveryError, match="topic a, b of cluster c was deleted and"):
        resolve_start(other.starting_offsets, split_ids, FakeLookup(LOGS), ids)


@pytest.mark.parametrize("split_ids", [(A0, B0), (B0, A0)])
def test_the_first_partition_of_a_foreign_history_is_named(split_ids: tuple[SplitId, ...]) -> None:
    source = KafkaSource(
        clusters=kafka_source().clusters, subscriber=TopicList(("a", "b"))
    ).starting_after(SwitchPosition(offsets={("z", 0): 4, ("y", 0): 4}))

    with pytest.raises(RefusedDiscoveryError, match="offsets of y, z, and none of c/a/0 or"):
        resolve_start(source.starting_offsets, split_ids, FakeLookup(LOGS))


def at(topic: str, offset: int, topic_id: str) -> KafkaPartitionSplit:
    return KafkaPartitionSplit(
        cluster="c", topic=topic, partition=0, offset=offset, topic_id=topic_id
    )


def test_a_recreated_topic_does_not_begin_behind_the_history_as_well() -> None:
    """Its offsets have nothing to do with those of the history."""
    meanings = {"c": {"a": "old", "b": "same"}}
    source = behind(
        OnDataLoss.CONTINUE, offsets={("a", 0): 4, ("b", 0): 4, ("c", 0): 4}, meanings=meanings
    )

    texts = source.begun_elsewhere([at("c", 4, "c"), at("b", 9, "same"), at("a", 9, "new")])

    assert len(texts) == 2
    assert "topic a (id new) was deleted and created again" in texts[0]
    assert "topic b (id same) does not begin where the history ends" in texts[1]
    assert "partition 0 from offset 4 to 8." in texts[1]


def test_a_topic_that_the_history_has_nothing_of_begins_where_it_begins() -> None:
    source = behind(OnDataLoss.CONTINUE, offsets={("a", 0): 4})

    assert source.begun_elsewhere([at("b", 9, "b")]) == []
    assert behind(OnDataLoss.CONTINUE, time=5).begun_elsewhere([at("a", 9, "a")]) == []


def test_a_partition_that_is_gone_has_no_start_even_where_starts_are_compared_with_ends() -> None:
    """It vanished between two questions, and is found again if it comes back."""
    listed = {("a", 0): AtOffset(4), ("a", 1): AtOffset(4)}

    starts = resolve_start(
        PerPartition(listed=listed, default=EARLIEST), [A0, A1], FakeLookup({A0: LOGS[A0]})
    )

    assert starts == {A0: 4}
