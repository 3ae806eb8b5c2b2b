"""Bugs that random lives have found, each as a short story."""

import pytest

from balanced_source.api import IDENTITY
from balanced_source.connectors.kafka import (
    EARLIEST,
    LATEST,
    KafkaSource,
    OffsetsInitializer,
    OnDataLoss,
    TopicList,
)
from balanced_source.coordinator import HostState
from balanced_source.coordinator.state import CoordinatorState
from balanced_source.coordinator.tracker import SplitAssignmentTracker
from balanced_source.documents.assignment import Assignment
from balanced_source.documents.report import HostReport
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.host.adoption import adopt
from balanced_source.lifecycles import HostPhase
from support.lives import Life
from support.stage import Stage, splits
from support.world import kafka_source

T = splits("t", 2)
A = T[0]


def recreate(stage: Stage, *, end: int) -> None:
    stage.topic_deleted("t").topic("t", 2, end=end)
    stage.broker.topic_ids["c", "t"] = "second"
    stage.drivers["0"].delivered.clear()  # offsets mean something else now


def source(starts: OffsetsInitializer, policy: OnDataLoss = OnDataLoss.CONTINUE) -> KafkaSource:
    return kafka_source("c", starting_offsets=starts, on_data_loss=policy)


def running(first: KafkaSource) -> Stage:
    stage = Stage(readers=2, hosts=1, source=first)
    stage.broker.topic_ids["c", "t"] = "first"
    return stage.topic("t", 2, end=10).running().more(5).adopts()


def test_a_moving_split_keeps_its_position_when_the_state_is_lost() -> None:
    """The readers only retain it at that moment; Latest of the rebuilt state is only a guess."""
    stage = running(source(LATEST))
    stage.cluster_down("c").operator_starts().fails(0).registers(0).rescales(1).adopts()
    assert stage.kept(0).keys() & set(T), "a reader is gone, and its split has no owner yet"

    stage.clusters_up().state_lost().more(
        5
    ).operator_starts().discovers().adopts().discovers().adopts()

    assert stage.drivers["0"].delivered.keys() == {(s, o) for s in T for o in range(10, 20)}


@pytest.mark.parametrize("starts", [EARLIEST, LATEST])
@pytest.mark.parametrize("is_known_first", [False, True])
def test_a_topic_that_is_recreated_while_there_is_not_a_state_is_read_from_its_beginning(
    starts: OffsetsInitializer, *, is_known_first: bool
) -> None:
    """The rebuilt state finds the new topic before or after readers report the former one."""
    stage = running(source(starts)).state_lost()
    recreate(stage, end=4)
    stage.operator_starts()
    if is_known_first:
        stage.discovers()

    stage.adopts().discovers().adopts().looks_again(2).adopts().looks_again().adopts()

    assert stage.drivers["0"].delivered.keys() == {(s, o) for s in T for o in range(4)}
    assert {s: stage.positions()[s] for s in T} == dict.fromkeys(T, 4)


def test_without_consent_a_topic_recreated_while_the_state_is_lost_is_reported() -> None:
    """Records of the former topic that were not read are lost, so someone has to decide."""
    stage = running(source(LATEST, OnDataLoss.FAIL)).state_lost()
    recreate(stage, end=4)

    stage.operator_starts().discovers().adopts().looks_again(2)

    assert "set onDataLoss to Continue" in str(
        stage.operator.coordinator.enumerator.problems()["c"]
    )
    assert stage.assignment.attributes[A] == {IDENTITY: "first"}


def test_an_older_copy_of_the_state_does_not_bring_a_previous_topic_back() -> None:
    """What readers read now is the later topic of that name, and they are far in it."""
    stage = running(source(EARLIEST))
    copy = stage.store.state
    recreate(stage, end=4)
    stage.looks_again().adopts().discovers().adopts()
    assert stage.drivers["0"].delivered.keys() == {(s, o) for s in T for o in range(4)}

    stage.store.state = copy
    stage.operator_starts().discovers().adopts().looks_again(2).adopts().more(3).adopts()

    assert stage.drivers["0"].delivered.keys() == {(s, o) for s in T for o in range(7)}


def test_a_host_takes_no_position_from_a_previous_split() -> None:
    offset = StreamOffset(
        epoch=4, positions={A: 7}, owners={A: 0}, attributes={A: {IDENTITY: "first"}}
    )
    assignment = Assignment(
        epoch=6,
        parallelism=1,
        incarnations={"0": 1},
        owners={A: 0},
        starts={A: 0},
        since={A: 6},
        retained=frozenset({A}),
        attributes={A: {IDENTITY: "second"}},
    )

    assert adopt(offset, assignment, host="0").positions == {A: 0}


def test_the_coordinator_takes_no_position_from_a_report_of_a_previous_split() -> None:
    split = kafka_source("c").create_split(A, 0, {IDENTITY: "second"})
    report = HostReport(
        incarnation=1, epoch=4, positions={A: 7}, attributes={A: {IDENTITY: "first"}}
    )
    state = CoordinatorState(
        epoch=5,
        hosts={
            "0": HostState(
                incarnation=1,
                phase=HostPhase.ACTIVE,
                report=report,
                addressed_epoch=1,
                known_from=1,
            )
        },
        owners={A: 0},
        splits={A: split},
        tracker=SplitAssignmentTracker(uncheckpointed={A: 0}),
    )

    assert state.position(A) == 0


@pytest.mark.parametrize("seed", [8, 58, 119, 257, 315])
def test_lives_that_went_wrong(seed: int) -> None:
    life = Life(seed)
    for _ in range(80):
        life.step()
    life.settle()


def test_a_position_on_its_way_to_another_host_is_retained() -> None:
    """The split has moved to a host that never registered when its topic leaves the source."""
    both = kafka_source("c", subscriber=TopicList(("t",)), retention=3600.0)
    stage = (
        Stage(readers=1, hosts=2, source=both).topic("t", 2, end=10).operator_starts().discovers()
    )
    stage.registers(0).adopts(0).adopts(0).rescales(2).adopts(0)
    moved = stage.with_owner(1)
    assert stage.positions()[moved] == 10

    stage.source_changes(kafka_source("c", subscriber=TopicList(("u",)), retention=3600.0)).adopts(
        0
    )
    stage.source_changes(both).discovers()

    assert stage.assignment.starts[moved] == 10


def test_positions_of_an_idle_host_count_when_the_state_is_lost_and_rebuilt() -> None:
    """The rebuilt state has looked up a start for a split of a host that has no reader now."""
    stage = Stage(readers=2, hosts=2).topic("t", 2, end=10).running().adopts()
    held = dict(stage.read(1))
    assert list(held.values()) == [10]
    stage.state_lost()
    stage.operator.parallelism = 1

    stage.operator_starts().discovers().adopts().discovers().adopts().more(3).adopts().adopts()

    assert {s: stage.positions()[s] for s in held} == dict.fromkeys(held, 13)
    delivered = stage.drivers["0"].delivered.keys()
    assert {o for s, o in delivered if s in held} == set(range(10, 13))


@pytest.mark.parametrize("hosts", [1, 2])
def test_a_host_that_registers_does_not_bring_a_previous_topic_back(hosts: int) -> None:
    """The host fails before it lets go of a recreated topic.

    What it reports of that topic moves no other split.
    """
    stage = (
        Stage(readers=2, hosts=hosts, source=source(EARLIEST))
        .topic("t", 2, end=10)
        .topic("u", 3, end=10)
    )
    stage.broker.topic_ids["c", "t"] = "first"
    stage.running().adopts()
    before = {s: o for s, o in stage.owners.items() if s not in T}
    recreate(stage, end=4)
    stage.looks_again()
    assert stage.state.revoking.keys() == set(T)

    for host in range(hosts):
        stage.fails(host)
    stage.all_register()
    assert stage.owners == before

    stage.adopts().looks_again().adopts().adopts()
    assert {s: stage.positions()[s] for s in T} == dict.fromkeys(T, 4)


@pytest.mark.parametrize("hosts", [1, 2])
def test_splits_stay_with_their_readers_when_the_state_is_lost(hosts: int) -> None:
    """The rebuilt state assigns splits before it hears of the hosts.

    That is a guess, and what hosts hold beats it.
    """
    stage = (
        Stage(readers=3, hosts=hosts).topic("t", 4, end=10).running().rescales(2).adopts().adopts()
    )
    before = stage.owners
    stage.state_lost()
    stage.operator.parallelism = 2

    stage.operator_starts().discovers()
    assert stage.owners != before, "the guess is another one, or this shows nothing"
    stage.adopts().discovers().adopts()

    assert stage.owners == before


@pytest.mark.parametrize("hosts", [1, 2])
def test_a_cluster_that_returns_is_new_although_a_host_still_holds_a_split_of_it(
    hosts: int,
) -> None:
    """The host fails before it lets go of the removed cluster, which is wanted when it returns."""
    one = kafka_source("c", starting_offsets=LATEST, retention=0.0)
    both = kafka_source("c", "d", starting_offsets=LATEST, retention=0.0)
    stage = (
        Stage(readers=2, hosts=hosts, source=both)
        .topic("t", 1)
        .topic("u", 1, cluster="d")
        .running()
        .adopts()
    )
    held = ("d", "u", 0)
    stage.topic("u", 2, cluster="d").looks_again()

    stage.source_changes(one)
    for host in range(hosts):
        stage.fails(host)
    stage.source_changes(both).all_register().adopts().looks_again()

    positions = stage.positions()
    assert positions[held] == 10, "the host goes on where it was"
    assert positions["d", "u", 1] == 10, (
        "nobody ever read the other split, and the user wants only what is new"
    )


def recreated_then_removed(*, retention: float) -> Stage:
    """A topic is recreated, and its cluster removed before readers let go of the former split."""
    both, rest = (
        kafka_source(
            *clusters,
            starting_offsets=LATEST,
            retention=retention,
            on_data_loss=OnDataLoss.CONTINUE,
        )
        for clusters in (("c", "d"), ("d",))
    )
    stage = Stage(readers=1, hosts=1, source=both)
    stage.broker.topic_ids["c", "t"] = "first"
    stage.topic("t", 1).topic("u", 1, cluster="d").running().adopts()
    stage.topic_deleted("t").topic("t", 1, end=0)
    stage.broker.topic_ids["c", "t"] = "second"
    stage.looks_again().more(3).source_changes(rest)
    stage.source_changes(both).looks_again().adopts().looks_again()
    return stage


def test_a_cluster_that_returns_in_time_continues_without_retained_positions() -> None:
    assert recreated_then_removed(retention=3600.0).positions()["c", "t", 0] == 0, (
        "records of the new topic are lost"
    )


def test_a_cluster_that_returns_later_is_new() -> None:
    assert recreated_then_removed(retention=0.0).positions()["c", "t", 0] == 3, (
        "the user wants only what is new"
    )
