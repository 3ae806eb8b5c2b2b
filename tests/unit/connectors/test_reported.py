"""Who gets a split that readers report when they register."""

from dataclasses import replace
from typing import Any

import pytest

from balanced_source.api import ReaderInfo, SplitId
from balanced_source.connectors.discovery.reported import take_reported
from balanced_source.connectors.discovery.values import DiscoveryState, Retained
from balanced_source.connectors.kafka import KafkaPartitionSplit
from support.hybrid_world import AssignedLists
from support.pull_source import Numbers
from support.world import kafka_source

S: SplitId = ("c", "t", 0)


def split(offset: int) -> KafkaPartitionSplit:
    return KafkaPartitionSplit(cluster="c", topic="t", partition=0, offset=offset)


def reader(number: int, offset: int, *, is_first: bool) -> ReaderInfo[KafkaPartitionSplit]:
    return ReaderInfo(subtask_id=number, reported_splits=(split(offset),), is_first_report=is_first)


def taken(
    *readers: ReaderInfo[KafkaPartitionSplit],
) -> DiscoveryState[KafkaPartitionSplit]:
    """The state after these readers have come; before, reader 0 had the split, at 10."""
    state = DiscoveryState(unassigned={S: split(10)}, preferred={S: 0})
    after, _ = take_reported(state, readers, {}, kafka_source(), until=0.0)
    return after


def test_an_older_copy_of_the_state_takes_no_split_from_the_reader_that_reads_it() -> None:
    assert taken(reader(1, 30, is_first=True)).preferred == {S: 1}


def test_a_state_that_knows_the_readers_decides_who_gets_a_split_back() -> None:
    assert taken(reader(1, 30, is_first=False)).preferred == {S: 0}


def test_of_two_readers_that_the_state_does_not_know_the_first_one_gets_the_split() -> None:
    found = taken(reader(1, 30, is_first=True), reader(2, 20, is_first=True))

    assert found.preferred == {S: 1}


@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize(("reported", "continued"), [(30, 30), (5, 10)])
def test_a_position_only_moves_forward_for_a_reader_that_did_not_have_the_split(
    reported: int, continued: int, *, is_first: bool
) -> None:
    found = taken(reader(1, reported, is_first=is_first))

    assert found.unassigned[S].offset == continued


@pytest.mark.parametrize(
    ("known", "reported", "continued"), [(None, 5, 5), (5, None, 5), (None, None, None)]
)
def test_any_position_is_further_than_none(
    known: Any, reported: Any, continued: int | None
) -> None:
    """A split that was never read has no position in some sources."""
    split_id: SplitId = ("lists", "list-0")
    state = DiscoveryState(
        unassigned={split_id: Numbers(name="list-0", number=known)}, preferred={split_id: 0}
    )
    found = ReaderInfo(subtask_id=1, reported_splits=(Numbers(name="list-0", number=reported),))

    after, _ = take_reported(state, [found], {}, AssignedLists(count=1), until=0.0)

    assert after.unassigned[split_id].position == continued


@pytest.mark.parametrize(("topic_id", "continued"), [("now", {S: 30}), ("former", {})])
def test_a_reader_that_holds_a_former_split_says_nothing_of_the_one_that_was_kept(
    topic_id: str, continued: dict[SplitId, int]
) -> None:
    """Its position means other records."""
    kept = Retained(split=replace(split(10), topic_id="now"), until=100.0)
    held = replace(split(30), topic_id=topic_id)
    state: DiscoveryState[KafkaPartitionSplit] = DiscoveryState(retained={S: kept})

    after, _ = take_reported(
        state,
        [ReaderInfo(subtask_id=0, reported_splits=(held,))],
        {},
        kafka_source(),
        until=0.0,
    )

    assert {s: found.offset for s, found in after.unassigned.items()} == continued
    assert after.retained == ({} if continued else {S: kept})
