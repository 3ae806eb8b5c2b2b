"""Partitions that Kafka shows only after the switch: what the history has of them is read."""

from typing import Any

import pytest

from balanced_source.api import ANY_SCOPE, SwitchPosition
from balanced_source.connectors.kafka import (
    EARLIEST,
    KafkaPartitionSplit,
    KafkaSource,
    resolve_start,
)
from balanced_source.connectors.kafka.offsets import NO_TOPIC_ID
from balanced_source.errors import RefusedDiscoveryError
from support.kafka_lookup import FakeLookup
from unit.hybrid.test_files_and_kafka import LOG, SPLIT, kafka

OLD, NEW = "e5KQvvYqT+e/EfwofZMpPA", "Z5KQvvYqT+e/EfwofZMpPA"
KNOWN = {"main": {"orders": OLD}}


def behind(offset: int, meanings: Any = KNOWN, *, topic: str = "orders") -> KafkaSource:
    position = SwitchPosition(offsets={(topic, 0): offset}, meanings=meanings)
    return kafka().starting_after(position)


def later(source: KafkaSource, topic_id: str = OLD) -> int:
    """Return where a partition starts that is found after the first discovery of its cluster."""
    call = source.initialize("main", [SPLIT], is_first=False)
    ids = {"orders": topic_id}
    return resolve_start(call.starting_offsets, [SPLIT], FakeLookup({SPLIT: LOG}), ids)[SPLIT]


def test_it_starts_behind_the_history_of_its_topic() -> None:
    assert later(behind(102)) == 102
    assert (
        later(behind(102, {ANY_SCOPE: {"orders": OLD.replace("+", "-").replace("/", "_")}})) == 102
    )


@pytest.mark.parametrize(
    ("meanings", "topic_id"),
    [
        (KNOWN, NEW),
        ({"main": {"orders": ""}}, OLD),
        ({}, OLD),
        ({"main": {"orders": NO_TOPIC_ID}}, NO_TOPIC_ID),
        ({**KNOWN, ANY_SCOPE: {"orders": NEW}}, OLD),
    ],
    ids=["recreated", "created meanwhile", "unknown", "without ids", "of another topic"],
)
def test_a_topic_that_may_be_another_one_is_read_from_its_first_record(
    meanings: Any, topic_id: str
) -> None:
    """It is no reason to stop: nothing of it was begun, or what was begun is told elsewhere."""
    assert later(behind(102, meanings), topic_id) == 100
    assert later(behind(9000, meanings), topic_id) == 100


def test_a_topic_without_history_is_read_from_its_first_record() -> None:
    assert later(behind(102, topic="sales")) == 100


def test_a_start_by_time_counts_for_the_first_discovery_only() -> None:
    """A new partition may have records that are older than the newest one of the history."""
    source = kafka().starting_after(SwitchPosition(time=1000))

    assert source.initialize("main", [SPLIT], is_first=False).starting_offsets == EARLIEST


def test_what_retention_took_behind_the_history_is_told() -> None:
    source = behind(90)
    start = later(source)
    split = KafkaPartitionSplit(
        cluster="main", topic="orders", partition=0, offset=start, topic_id=OLD
    )

    (text,) = source.begun_late([split])

    assert start == 100
    assert "did not begin where the history ends" in text
    assert "partition 0 from offset 90 to 99" in text
    assert behind(100).begun_late([split]) == []


def test_a_history_that_is_ahead_of_its_topic_is_refused() -> None:
    with pytest.raises(RefusedDiscoveryError, match="the history continues to offset 900"):
        later(behind(900))
