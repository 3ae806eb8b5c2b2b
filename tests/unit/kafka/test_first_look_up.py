"""The first look-up of start offsets on a cluster, and what can happen to the cluster meanwhile."""

from typing import Any

import pytest

from balanced_source.api import CallFailure
from balanced_source.connectors.discovery import Discover, Initialize
from balanced_source.connectors.kafka import LATEST, KafkaSource
from balanced_source.coordinator import CallCompleted, ExecuteCall
from balanced_source.errors import TransientDiscoveryError
from support.stage import Stage, splits
from support.world import kafka_source

D = splits("t", 2, cluster="d")


def source(*clusters: str, **changes: Any) -> KafkaSource:
    return kafka_source(*clusters, starting_offsets=LATEST, **changes)


def stage_with(*clusters: str, **changes: Any) -> Stage:
    stage = Stage(readers=2, hosts=1, source=source(*clusters, **changes))
    return stage.topic("t", 2, cluster="c", end=10).topic("t", 2, cluster="d", end=10).running()


def look_ups(stage: Stage) -> list[ExecuteCall]:
    return [call for call in stage.operator.calls if isinstance(call.call, Initialize)]


def fails(stage: Stage, call: ExecuteCall) -> None:
    stage.operator.calls.remove(call)
    error = TransientDiscoveryError("d is down", scope="d")
    stage.operator.handle(CallCompleted(call.call_id, CallFailure(error)))


@pytest.mark.parametrize("retention", [0.0, 3600.0])
def test_a_cluster_that_returns_after_its_first_look_up_was_cut_off_starts_at_latest(
    retention: float,
) -> None:
    stage = stage_with("c", retention=retention)
    stage.source_changes(source("c", "d", retention=retention)).answers(Discover)
    assert look_ups(stage)

    stage.source_changes(source("c", retention=retention)).answers(Initialize)
    stage.more(5).source_changes(source("c", "d", retention=retention)).discovers()

    assert {s: stage.positions()[s] for s in D} == dict.fromkeys(D, 15)


def test_an_answer_to_a_look_up_from_before_the_removal_is_ignored() -> None:
    """The cluster is back, and asked again, when the answer about its former life arrives."""
    stage = stage_with("c")
    stage.source_changes(source("c", "d")).answers(Discover)
    [former] = look_ups(stage)
    stage.operator.calls.remove(former)
    answer = stage.broker.execute(former.call)
    stage.source_changes(source("c")).more(5)
    stage.source_changes(source("c", "d")).answers(Discover)

    stage.operator.handle(CallCompleted(former.call_id, answer))
    assert not stage.pending & set(D)
    stage.discovers()

    assert {s: stage.positions()[s] for s in D} == dict.fromkeys(D, 15)


def test_a_cluster_put_back_before_readers_let_go_starts_at_latest_without_retention() -> None:
    stage = stage_with("c", "d").adopts()

    stage.source_changes(source("c")).source_changes(source("c", "d")).discovers()
    stage.more(5).adopts().discovers().adopts()

    assert {s: stage.positions()[s] for s in D} == dict.fromkeys(D, 15)
    assert not {s for s, _ in stage.drivers["0"].delivered if s in D}, (
        "nothing was produced since it is read again"
    )


def test_a_cluster_put_back_with_a_new_topic_before_readers_let_go_starts_at_latest() -> None:
    """The look-up of the new topic ends while the old one's splits still wait for readers."""
    stage = stage_with("c", "d").adopts()

    stage.source_changes(source("c")).topic("new", 1, cluster="d", end=7)
    stage.source_changes(source("c", "d")).discovers()
    stage.more(5).adopts().discovers().adopts()

    assert {s: stage.positions()[s] for s in D} == dict.fromkeys(D, 15)
    assert not {s for s, _ in stage.drivers["0"].delivered if s in D}


def test_a_second_look_up_does_not_end_the_first_discovery_while_the_first_one_may_fail() -> None:
    stage = stage_with("c")
    stage.source_changes(source("c", "d")).answers(Discover)
    [first] = look_ups(stage)
    stage.topic("t", 3, cluster="d").source_changes(source("c", "d", failure_threshold=9)).answers(
        Discover
    )
    [second] = [call for call in look_ups(stage) if call is not first]
    stage.operator.calls.remove(second)
    stage.operator.handle(CallCompleted(second.call_id, stage.broker.execute(second.call)))

    fails(stage, first)
    stage.looks_again()

    assert {s: stage.positions()[s] for s in D} == dict.fromkeys(D, 10)


def test_a_look_up_that_fails_after_its_cluster_was_removed_changes_nothing() -> None:
    stage = stage_with("c")
    stage.source_changes(source("c", "d")).answers(Discover)
    [call] = look_ups(stage)
    stage.source_changes(source("c"))

    fails(stage, call)

    assert stage.operator.coordinator.enumerator.problems() == {}
    stage.source_changes(source("c", "d")).discovers()
    assert stage.positions().keys() >= set(D)
