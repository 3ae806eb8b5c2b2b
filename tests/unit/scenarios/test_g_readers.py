"""Group G: what readers hold while clusters and topics come and go.

Upstream sends metadata and splits to readers in separate events, which can arrive in any order.
Here both are one document, so that they cannot disagree.
"""

from typing import Any

import pytest

from balanced_source.api import SplitId
from balanced_source.connectors.kafka import KafkaSource, TopicList, TopicPattern
from support.stage import Stage, bounded_source, splits
from support.world import kafka_source

C0, C1 = splits("t", 3, cluster="c0"), splits("t", 3, cluster="c1")


def source(*clusters: str, **changes: Any) -> KafkaSource:
    return kafka_source(*clusters, **{"retention": 60.0, **changes})


def running(*clusters: str, end: int = 10, **changes: Any) -> Stage:
    stage = Stage(readers=2, hosts=1, source=source(*clusters, **changes))
    for cluster in ("c0", "c1"):
        stage.topic("t", 3, cluster=cluster, end=end)
    return stage.running().adopts()


def active(stage: Stage) -> int:
    return len(stage.read(0))


@pytest.mark.scenario("G1", "G2", "G8")
def test_every_document_has_the_settings_of_all_the_splits_in_it() -> None:
    """No reader asks for settings, and none gets a split without them."""
    stage = Stage(readers=2, hosts=1, source=source("c0", "c1"))
    stage.topic("t", 3, cluster="c0").topic("t", 3, cluster="c1")

    published = stage.watch(lambda: stage.running().source_changes(source("c1")).discovers())

    assert any(document.owners for document in published)
    for document in published:
        clusters = document.settings["kafka"]["clusters"]
        assert {split[0] for split in document.owners} <= clusters.keys()


@pytest.mark.scenario("G3", "G5")
def test_the_number_of_active_splits_through_removal_and_return() -> None:
    """6, without c0 3, without any 0, with c1 again 3."""
    stage, counts = running("c0", "c1"), []
    for clusters in (("c0", "c1"), ("c1",), (), ("c1",)):
        made = (
            source(*clusters)
            if clusters
            else KafkaSource(clusters=(), subscriber=TopicPattern(".*"), retention=60.0)
        )
        stage.source_changes(made).discovers().adopts().adopts()
        counts.append(active(stage))

    assert counts == [6, 3, 0, 3]


@pytest.mark.scenario("G4")
def test_a_cluster_that_is_gone_at_startup_leaves_the_readers() -> None:
    """The spec changed while no operator ran."""
    stage = running("c0", "c1")

    stage.operator_starts(source("c1")).discovers().all_register().adopts()

    assert set(stage.read(0)) == set(C1)


@pytest.mark.scenario("G6")
def test_positions_are_kept_for_a_return_and_only_for_so_long() -> None:
    """c0 stands at 10 and c1 continues to 20; c0 returns at 10.

    After the deadline only c1 is left of it.
    """
    stage = running("c0", "c1")
    stage.source_changes(source("c1")).adopts()
    stage.broker.ends.update(dict.fromkeys(C1, 20))
    stage.adopts()
    assert stage.kept(0) == dict.fromkeys(C0, 10)

    stage.source_changes(source("c0", "c1")).discovers()
    assert {stage.positions()[s] for s in C0} == {10}
    stage.adopts()
    assert stage.read(0) == {**dict.fromkeys(C0, 10), **dict.fromkeys(C1, 20)}

    stage.source_changes(source("c1")).adopts()
    stage.operator.now += 61
    stage.looks_again().adopts()
    assert (stage.kept(0), set(stage.read(0))) == ({}, set(C1))


@pytest.mark.scenario("G7")
def test_without_clusters_nothing_is_read_and_a_bounded_source_is_done() -> None:
    """Nothing to wait for, and no more splits."""
    empty = bounded_source(clusters=())
    stage = (
        Stage(readers=2, hosts=1, source=empty)
        .operator_starts()
        .discovers()
        .all_register()
        .adopts()
    )

    assert (active(stage), stage.operator.coordinator.enumerator.problems()) == (0, {})


@pytest.mark.scenario("G9")
def test_a_topic_that_is_swapped_on_one_cluster_leaves_the_other_alone() -> None:
    """c1 reads the other topic from its beginning.

    c0 stays at 10, although it is published again.
    """
    stage = running("c0", "c1", subscriber=TopicList(("t", "other")))
    stage.topic_deleted("t", cluster="c1").topic("other", 1, cluster="c1", end=4)

    stage.looks_again(3).adopts().adopts()

    other: SplitId = ("c1", "other", 0)
    assert stage.read(0) == {**dict.fromkeys(C0, 10), other: 4}


@pytest.mark.scenario("G11")
def test_the_last_split_is_removed() -> None:
    """The host continues with nothing; what comes later is read."""
    stage = running("c0")
    stage.source_changes(source("c0", subscriber=TopicList(("nothing",)))).discovers().adopts()
    assert active(stage) == 0

    stage.topic("nothing", 1, cluster="c0", end=3).looks_again().adopts()
    assert stage.read(0) == {("c0", "nothing", 0): 3}


@pytest.mark.scenario("G12")
def test_returned_splits_do_not_disturb_other_splits() -> None:
    """Another split emits 10, then 11, while retained ones come back."""
    stage = running("c0", "c1")
    stage.source_changes(source("c0")).adopts()
    stage.more(1)
    before = {s: owner for s, owner in stage.owners.items() if s in C0}

    stage.source_changes(source("c0", "c1")).discovers().adopts()

    assert {s: stage.owners[s] for s in C0} == before
    assert set(stage.read(0).values()) == {11}
    assert {offset for s, offset in stage.drivers["0"].delivered if s == C0[0]} == set(range(11))
