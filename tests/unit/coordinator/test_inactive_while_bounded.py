"""A cluster of a source with an end is inactive for a while: its rest is not forgotten."""

import dataclasses

import pytest

from balanced_source.connectors.discovery import Alarm
from support.stage import Stage, bounded_source

C = [("c", "t", 0), ("c", "t", 1)]
D = [("d", "t", 0), ("d", "t", 1)]


def stage_with_a_rest(*clusters: str, retention: float = 3600.0) -> Stage:
    """Everything is read, but two records of each partition of d."""
    stage = Stage(readers=2, hosts=1, source=bounded_source(*clusters, retention=retention))
    for cluster in clusters:
        stage.topic("t", 2, cluster=cluster, end=5)
    stage.operator_starts().discovers().all_register()
    driver = stage.drivers["0"]
    driver.see_assignment()
    for _ in range(2):
        driver.batch(upto=dict.fromkeys(C, 5) | dict.fromkeys(D, 3))
    driver.report()
    stage.operator.see_reports()
    return stage


def is_finished(stage: Stage) -> bool:
    return stage.operator.coordinator.enumerator.is_finished()


def take_away(stage: Stage) -> None:
    source = stage.operator.source
    there = tuple(cluster for cluster in source.clusters if cluster.name != "d")
    away = tuple(cluster for cluster in source.clusters if cluster.name == "d")
    stage.source_changes(dataclasses.replace(source, clusters=there, inactive=away)).adopts()


@pytest.mark.parametrize("clusters", [("c", "d"), ("d",)])
def test_a_source_is_not_finished_while_an_inactive_cluster_has_an_unread_rest(
    clusters: tuple[str, ...],
) -> None:
    stage = stage_with_a_rest(*clusters)
    whole = stage.operator.source

    take_away(stage)

    assert not is_finished(stage)
    assert stage.told_no_more == set()

    stage.source_changes(whole).discovers().adopts().adopts()

    assert is_finished(stage)
    assert {offset for split, offset in stage.drivers["0"].delivered if split in D} == set(range(5))


def test_a_cluster_that_was_read_to_its_end_is_not_waited_for() -> None:
    stage = stage_with_a_rest("c", "d").adopts().adopts()
    assert is_finished(stage)

    take_away(stage)

    assert is_finished(stage)
    assert stage.told_no_more == {0, 1}


def test_a_cluster_that_the_source_does_not_name_any_more_is_not_waited_for() -> None:
    stage = stage_with_a_rest("c", "d")
    source = stage.operator.source

    stage.source_changes(dataclasses.replace(source, clusters=source.clusters[:1])).adopts()

    assert is_finished(stage)


def test_a_position_that_is_dropped_is_not_waited_for_any_more() -> None:
    stage = stage_with_a_rest("c", "d", retention=60.0)
    take_away(stage)
    assert not is_finished(stage)

    stage.answers(Alarm, delayed=True)

    assert is_finished(stage)
    assert stage.told_no_more == {0, 1}


def test_a_rest_that_is_read_before_the_query_learns_of_the_pause_is_not_waited_for() -> None:
    """The query ends with the assignment it has, and no report ever has a newer epoch."""
    stage = stage_with_a_rest("c", "d")
    source = stage.operator.source
    there = tuple(cluster for cluster in source.clusters if cluster.name == "c")
    away = tuple(cluster for cluster in source.clusters if cluster.name == "d")
    stage.source_changes(dataclasses.replace(source, clusters=there, inactive=away))
    assert not is_finished(stage)

    driver = stage.drivers["0"]
    for _ in range(2):
        driver.batch()
    driver.report()
    stage.operator.see_reports()

    assert {offset for split, offset in driver.delivered if split in D} == set(range(5))
    assert is_finished(stage)
