"""An assignment names the scopes that it does not have yet.

A query that ends by itself must not end without them.
"""

from typing import Any

from balanced_source.coordinator import PersistState, PublishAssignment
from support.stage import Stage, splits
from support.world import kafka_source


def stage_of(*clusters: str) -> Stage:
    stage = Stage(readers=2, hosts=1, source=kafka_source(*clusters))
    for cluster in clusters:
        stage.topic("t", 2, cluster=cluster)
    return stage


def told(stage: Stage) -> list[tuple[int, frozenset[str]]]:
    return [(document.epoch, document.undiscovered) for document in stage.operator.published]


def test_the_first_assignment_names_the_cluster_that_has_not_answered() -> None:
    stage = stage_of("fast", "slow").cluster_down("slow").running()

    assert stage.assignment.owners.keys() == set(splits("t", 2, cluster="fast"))
    assert stage.assignment.undiscovered == {"slow"}


def test_the_assignment_with_the_last_cluster_names_none() -> None:
    stage = stage_of("fast", "slow").cluster_down("slow").running()

    stage.clusters_up().looks_again()

    assert stage.assignment.undiscovered == frozenset()
    assert {cluster for cluster, _, _ in stage.assignment.owners} == {"fast", "slow"}


def test_a_cluster_without_splits_is_discovered_without_a_new_epoch() -> None:
    stage = stage_of("fast", "empty").cluster_down("empty").running()
    stage.topic_deleted("t", cluster="empty")
    epoch = stage.epoch

    published = stage.watch(lambda: stage.clusters_up().looks_again())

    assert [(document.epoch, document.undiscovered) for document in published] == [
        (epoch, frozenset())
    ]


def test_a_cluster_that_is_added_is_named_at_once() -> None:
    stage = stage_of("a").running()
    epoch, source = stage.epoch, kafka_source("a", "b")
    settings = stage.operator.source.reader_settings()
    published = stage.watch(lambda: stage.cluster_down("b").source_changes(source))

    assert source.reader_settings() != settings, "which is an epoch of its own"
    assert [(document.epoch, document.undiscovered) for document in published][-1] == (
        epoch + 1,
        {"b"},
    )


def test_the_state_is_stored_before_a_discovered_scope_is_published(
    monkeypatch: Any,
) -> None:
    stage = stage_of("fast", "empty").cluster_down("empty").running()
    stage.topic_deleted("t", cluster="empty")
    seen: list[type] = []
    do = stage.operator._do
    monkeypatch.setattr(
        stage.operator, "_do", lambda effects: (seen.extend(map(type, effects)), do(effects))
    )

    stage.clusters_up().looks_again()

    assert [kind for kind in seen if kind in (PersistState, PublishAssignment)] == [
        PersistState,
        PublishAssignment,
    ]


def test_nothing_is_published_while_the_same_scopes_are_undiscovered() -> None:
    stage = stage_of("fast", "slow").cluster_down("slow").running()

    assert stage.watch(lambda: stage.looks_again(5)) == []


def test_a_restarted_operator_repeats_what_its_predecessor_may_not_have_reported() -> None:
    """It may have died between storing and publishing."""
    stage = stage_of("fast", "empty").cluster_down("empty").running()
    stage.topic_deleted("t", cluster="empty")
    stage.clusters_up().looks_again()

    published = stage.watch(stage.operator_starts)

    assert [document.undiscovered for document in published] == [frozenset()]
    assert told(stage)[-1] == (stage.epoch, frozenset())
