"""Topics that are deleted, and recreated under the same name.

Another thing, never read with old offsets.
"""

import dataclasses
from typing import Any

import pytest

from balanced_source.connectors.kafka import OnDataLoss, SkipCounter, TopicList
from balanced_source.documents import columns
from balanced_source.host import SplitRange
from balanced_source_spark.kafka.skipping import existing
from support.stage import Stage, splits
from support.world import kafka_source

T = splits("t", 2)


def stage_with(policy: OnDataLoss, *, retention: float = 3600.0) -> Stage:
    stage = Stage(
        readers=2, hosts=1, source=kafka_source("c", on_data_loss=policy, retention=retention)
    )
    stage.broker.topic_ids["c", "t"] = "first"
    return stage.topic("t", 2, end=10).topic("other", 2, end=10).running().adopts()


def create_anew(stage: Stage, *, end: int = 4) -> None:
    stage.topic_deleted("t").topic("t", 2, end=end)
    stage.broker.topic_ids["c", "t"] = "second"
    stage.drivers["0"].delivered.clear()  # offsets mean something else now


def test_a_new_topic_of_the_same_name_is_read_from_its_beginning_after_the_old_one_was_let_go() -> (
    None
):
    """Two phases: readers adopt an epoch without the splits, and then get them as new ones."""
    stage = stage_with(OnDataLoss.CONTINUE)
    assert stage.positions()[T[0]] == 10
    create_anew(stage)

    stage.looks_again()
    assert not stage.owners.keys() & set(T), "revoked first"
    assert "SplitsRemoved" in stage.facts
    stage.adopts().discovers().adopts()

    assert stage.positions() == dict.fromkeys([*splits("other", 2), *T], 0) | {
        **dict.fromkeys(splits("other", 2), 10),
        **dict.fromkeys(T, 4),
    }
    assert {s for s, _ in stage.drivers["0"].delivered} == set(T)
    assert stage.assignment.attributes[T[0]] == {"id": "second"}


def test_new_splits_are_assigned_only_after_readers_have_released_the_old_ones() -> None:
    stage = stage_with(OnDataLoss.CONTINUE)
    create_anew(stage)

    stage.looks_again(5)

    assert not stage.owners.keys() & set(T)
    assert not stage.pending & set(T)


def test_without_consent_nothing_is_read_and_a_condition_says_what_to_do() -> None:
    stage = stage_with(OnDataLoss.FAIL)
    create_anew(stage)

    stage.looks_again(3).adopts()

    problem = stage.operator.coordinator.enumerator.problems()["c"]
    assert "set onDataLoss to Continue" in str(problem)
    assert stage.owners.keys() >= set(T), (
        "kept as they are: their readers do not read them (KafkaAdmin.ends)"
    )
    assert not {s for s, _ in stage.drivers["0"].delivered} & set(T)


def test_consent_that_is_given_later_takes_effect_at_once() -> None:
    stage = stage_with(OnDataLoss.FAIL)
    create_anew(stage)
    stage.looks_again(2)

    stage.source_changes(
        kafka_source("c", on_data_loss=OnDataLoss.CONTINUE, retention=3600.0)
    ).discovers()
    stage.adopts().discovers().adopts()

    assert {stage.positions()[s] for s in T} == {4}
    assert stage.operator.coordinator.enumerator.problems() == {}


@pytest.mark.parametrize("retention", [0.0, 3600.0])
def test_a_deleted_topic_whose_positions_are_kept_does_not_lend_them_to_a_new_one(
    retention: float,
) -> None:
    """Deleted, confirmed, retained; then the name is used again."""
    stage = stage_with(OnDataLoss.CONTINUE, retention=retention)
    stage.topic_deleted("t").looks_again(2).adopts()
    assert not stage.owners.keys() & set(T)

    stage.topic("t", 2, end=4)
    stage.broker.topic_ids["c", "t"] = "second"
    stage.drivers["0"].delivered.clear()
    stage.looks_again().adopts().looks_again().adopts()

    assert {stage.positions()[s] for s in T} == {4}
    assert {s for s, _ in stage.drivers["0"].delivered} == set(T)


UNREAD = (
    "topic t (id first) was deleted{}. Records that were not read, if any, are gone: partition 0"
    " from offset 10 on; partition 1 from"
)


@pytest.mark.parametrize("policy", OnDataLoss)
def test_unread_records_of_a_recreated_topic_are_named_also_those_that_no_micro_batch_has_planned(
    policy: OnDataLoss,
) -> None:
    """The driver knows only of the ends that it has asked for.

    What came after them was lost without a word.
    """
    stage = stage_with(policy)
    create_anew(stage)
    stage.looks_again()

    told = [
        *stage.operator.messages,
        *map(str, stage.operator.coordinator.enumerator.problems().values()),
    ]
    assert [text for text in told if UNREAD.format(" and created again") in text]


def test_unread_records_of_a_deleted_topic_are_named() -> None:
    stage = stage_with(OnDataLoss.CONTINUE)
    stage.topic_deleted("t").looks_again(2)

    assert [text for text in stage.operator.messages if UNREAD.format("") in text]


def test_unread_records_of_a_topic_that_is_recreated_while_its_position_is_retained_are_named() -> (
    None
):
    """Its cluster is inactive meanwhile."""
    stage = stage_with(OnDataLoss.CONTINUE)
    active, inactive = stage.operator.source.clusters, ()
    stage.source_changes(
        dataclasses.replace(stage.operator.source, clusters=(), inactive=active)
    ).adopts()
    stage.topic_deleted("t").topic("t", 2, end=4)
    stage.broker.topic_ids["c", "t"] = "second"

    stage.source_changes(
        dataclasses.replace(stage.operator.source, clusters=active, inactive=inactive)
    ).discovers()

    assert [text for text in stage.operator.messages if UNREAD.format(" and created again") in text]


def away(stage: Stage) -> Any:
    """Take the cluster out, until the readers have let go of it.

    Returns the source that brings it back.
    """
    source = stage.operator.source
    stage.source_changes(
        dataclasses.replace(source, clusters=(), inactive=source.clusters)
    ).adopts()
    return source


def test_partitions_that_a_recreated_topic_lacks_are_named_when_their_cluster_returns() -> None:
    stage = stage_with(OnDataLoss.CONTINUE)
    source = away(stage)
    stage.topic_deleted("t").topic("t", 1, end=4)
    stage.broker.topic_ids["c", "t"] = "second"

    stage.drivers["0"].delivered.clear()
    stage.source_changes(source).discovers().looks_again(3).adopts()

    gone = [text for text in stage.operator.messages if "(id first)" in text]
    assert [text for text in gone if "partition 0 from offset 10 on" in text]
    assert len([text for text in gone if "partition 1 from offset 10 on" in text]) == 1


@pytest.mark.parametrize("policy", OnDataLoss)
def test_a_topic_that_is_deleted_while_its_cluster_is_out_is_named_once(policy: OnDataLoss) -> None:
    stage = stage_with(policy)
    source = away(stage)
    stage.topic_deleted("t")

    stage.source_changes(source).discovers()
    assert not [text for text in stage.operator.messages if "deleted" in text], "not confirmed yet"
    stage.looks_again(3)
    away(stage)
    stage.source_changes(source).discovers().looks_again(3)

    assert len([text for text in stage.operator.messages if UNREAD.format("") in text]) == 1


def test_a_topic_that_is_deleted_again_after_its_return_is_named_again() -> None:
    stage = stage_with(OnDataLoss.CONTINUE)
    stage.topic_deleted("t").looks_again(2).adopts()
    stage.topic("t", 2, end=12).looks_again().adopts()
    stage.topic_deleted("t").looks_again(2)

    named = [text for text in stage.operator.messages if "topic t (id first) was deleted" in text]
    assert [text.partition(": partition 0 ")[2].partition(";")[0] for text in named] == [
        "from offset 10 on",
        "from offset 12 on",
    ]


LATE = "did not begin at offset 0 when they were found"


@pytest.mark.parametrize("policy", OnDataLoss)
def test_records_that_retention_took_from_a_new_partition_before_it_was_found_are_named(
    policy: OnDataLoss,
) -> None:
    stage = stage_with(policy)
    stage.broker.create("c", "t", [2], begin=5, end=9)
    stage.broker.create("c", "t", [3], begin=0, end=9)

    stage.looks_again(3).adopts()

    (text,) = [text for text in stage.operator.messages if LATE in text]
    assert "cluster c: new partitions of topic t (id first)" in text
    assert "could be read: partition 2 from offset 0 to 4. " in text
    assert stage.positions()["c", "t", 2] == 9


def test_a_recreated_topic_whose_first_records_are_gone_is_named() -> None:
    stage = stage_with(OnDataLoss.CONTINUE)
    stage.topic_deleted("t").topic("t", 2, begin=3, end=4)
    stage.broker.topic_ids["c", "t"] = "second"
    stage.drivers["0"].delivered.clear()

    stage.looks_again().adopts().discovers().adopts()

    (text,) = [text for text in stage.operator.messages if LATE in text]
    assert "partition 0 from offset 0 to 2; partition 1 from offset 0 to 2" in text


def test_a_log_that_does_not_begin_at_zero_at_the_first_look_is_as_the_user_wants_it() -> None:
    stage = (
        Stage(readers=2, hosts=1, source=kafka_source("c"))
        .topic("t", 2, begin=5, end=10)
        .running()
        .adopts()
    )

    assert stage.positions() == dict.fromkeys(T, 10)
    assert not [text for text in stage.operator.messages if LATE in text]


def test_a_topic_that_is_not_subscribed_any_more_is_not_called_deleted() -> None:
    stage = stage_with(OnDataLoss.CONTINUE)
    changed = dataclasses.replace(stage.operator.source, subscriber=TopicList(("other",)))
    stage.source_changes(changed).adopts().looks_again(3)

    assert not [text for text in stage.operator.messages if "deleted" in text]


def test_removing_a_cluster_loses_nothing() -> None:
    stage = stage_with(OnDataLoss.CONTINUE)
    stage.source_changes(
        dataclasses.replace(
            stage.operator.source, clusters=(), inactive=stage.operator.source.clusters
        )
    ).adopts()

    assert not [text for text in stage.operator.messages if "gone" in text]


def test_a_topic_that_was_invisible_for_a_while_continues() -> None:
    """A broker that is briefly blind: the same id comes back."""
    stage = stage_with(OnDataLoss.CONTINUE)
    stage.topic_deleted("t").looks_again(1)
    stage.topic("t", 2, end=12).looks_again().adopts()

    assert {stage.positions()[s] for s in T} == {12}
    assert {offset for s, offset in stage.drivers["0"].delivered if s in T} == set(range(12))


def test_an_unknown_id_is_not_a_reason_to_start_over() -> None:
    """State of former versions, and reports of hosts after the state was lost, know no ids."""
    stage = Stage(readers=2, hosts=1, source=kafka_source("c", on_data_loss=OnDataLoss.CONTINUE))
    stage.topic("t", 2, end=10).running().adopts()
    before = stage.owners

    stage.broker.topic_ids["c", "t"] = "first"
    stage.looks_again(3)

    assert stage.owners == before


def test_skipped_offsets_are_counted_once() -> None:
    counter, a, b = SkipCounter(), T[0], T[1]

    def note(ranges: Any, begins: Any) -> list[str]:
        return list(map(str, counter.note(ranges, begins)))

    assert note({a: (5, 20), b: (0, 3)}, {a: 12, b: 0}) == [
        "topic t partition 0 from offset 5 to 11"
    ]
    assert note({a: (5, 20), b: (0, 3)}, {a: 12, b: 0}) == [], "a replay of the same micro-batch"
    assert note({a: (20, 30), b: (3, 9)}, {a: 25, b: 100}) == [
        "topic t partition 0 from offset 20 to 24",
        "topic t partition 1 from offset 3 to 8",
    ]
    assert note({("c", "gone", 0): (1, 2)}, {}) == []
    assert counter.total == 18


def test_ranges_are_cut_to_what_exists() -> None:
    ranges = [
        SplitRange(split_id=T[0], start=5, end=20),
        SplitRange(split_id=T[1], start=0, end=3),
        SplitRange(split_id=("c", "gone", 0), start=0, end=3),
    ]

    assert existing(ranges, {T[0]: 12, T[1]: 3}) == [SplitRange(split_id=T[0], start=12, end=20)]


def test_nothing_is_left_of_a_range_without_an_end() -> None:
    assert existing([SplitRange(split_id=T[0], start=None, end=None)], {T[0]: 0}) == []


def test_ids_of_topics_cost_next_to_nothing_in_documents() -> None:
    attributes = {("c", "t", p): {"id": "OQ8gY1aTQf2Vv7mHnyMZKA"} for p in range(1000)}

    rows = columns.encode_map(attributes)

    assert rows == [[["c", "t"], [[0, 1000]], [{"id": "OQ8gY1aTQf2Vv7mHnyMZKA"}]]]
    assert columns.decode_map(rows) == attributes


@pytest.mark.parametrize("is_state_lost", [False, True])
def test_a_driver_that_restarts_in_between_brings_no_old_offsets_back(is_state_lost: bool) -> None:
    """Its Spark checkpoint keeps the position of a split that it let go of, and reports it."""
    stage = stage_with(OnDataLoss.CONTINUE)
    create_anew(stage)
    stage.looks_again().adopts().discovers()
    if is_state_lost:
        stage.state_lost()
    stage.operator_starts().discovers().fails(0).registers(
        0
    ).looks_again().adopts().looks_again().adopts()

    assert {stage.positions()[s] for s in T} == {4}
    assert {offset for s, offset in stage.drivers["0"].delivered if s in T} == set(range(4))
