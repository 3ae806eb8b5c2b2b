"""An older copy of a Spark checkpoint is restored, and the sink of then: each record once."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from balanced_source.api import SplitId
from balanced_source.connectors.kafka import EARLIEST, LATEST, OffsetsInitializer, TopicList
from balanced_source.coordinator import HostsChanged
from support.stage import Stage, splits
from support.world import Driver, kafka_source

D = splits("t", 2, cluster="d")


def source(*clusters: str, topics: Iterable[str] = ("t", "u"), **changes: Any) -> Any:
    return kafka_source(*clusters, subscriber=TopicList(topics), **{"retention": 3600.0, **changes})


def running(first: Any) -> Stage:
    """Two clusters whose partitions have ten records each; five more of each were read."""
    stage = Stage(readers=2, hosts=1, source=first)
    for cluster in "cd":
        stage.topic("t", 2, cluster=cluster, end=10)
    return stage.running().more(5).adopts()


def copied(driver: Driver) -> Callable[[], None]:
    """Copy checkpoint and sink; the function that is returned restores both."""
    offsets, committed, delivered = [*driver.offsets], driver.committed, {**driver.delivered}

    def restore() -> None:
        driver.offsets, driver.committed = [*offsets], committed
        driver.delivered = {**delivered}
        driver.start()

    return restore


def delivered(stage: Stage, split_ids: Iterable[SplitId]) -> set[tuple[int, ...]]:
    """Offsets of splits that the sink has; it refuses one that comes twice."""
    found = stage.drivers["0"].delivered
    return {tuple(sorted(o for s, o in found if s == split_id)) for split_id in split_ids}


@pytest.fixture(params=[False, True], ids=["the operator runs", "the operator starts as well"])
def comes_back(request: pytest.FixtureRequest) -> Callable[[Stage, Callable[[], None]], Stage]:
    """Restores a copy, and lets everything settle."""

    def come_back(stage: Stage, restore: Callable[[], None]) -> Stage:
        restore()
        if request.param:
            stage.operator_starts()
        stage.operator.see_reports()
        return stage.discovers().adopts().looks_again().adopts()

    return come_back


Back = Callable[[Stage, Callable[[], None]], Stage]


@pytest.mark.parametrize("starts", [EARLIEST, LATEST])
def test_a_cluster_that_has_left_since_returns_where_the_copy_was(
    comes_back: Back, starts: OffsetsInitializer
) -> None:
    both, one = source("c", "d", starting_offsets=starts), source("c", starting_offsets=starts)
    stage = running(both)
    restore = copied(stage.drivers["0"])
    stage.more(5).adopts().source_changes(one).adopts()

    comes_back(stage, restore).source_changes(both).discovers().adopts()

    first = 0 if starts == EARLIEST else 10
    assert delivered(stage, D) == {tuple(range(first, 20))}


def test_what_the_copy_retained_returns_where_it_was_then(comes_back: Back) -> None:
    both, one = source("c", "d"), source("c")
    stage = running(both).source_changes(one).adopts()
    restore = copied(stage.drivers["0"])
    stage.more(5).source_changes(both).discovers().adopts().source_changes(one).adopts()
    assert delivered(stage, D) == {tuple(range(20))}

    comes_back(stage, restore).source_changes(both).discovers().adopts()

    assert delivered(stage, D) == {tuple(range(20))}


def test_what_the_copy_retained_and_was_read_since_is_read_from_where_it_was(
    comes_back: Back,
) -> None:
    both, one = source("c", "d"), source("c")
    stage = running(both).source_changes(one).adopts()
    restore = copied(stage.drivers["0"])
    stage.more(5).source_changes(both).discovers().adopts()

    comes_back(stage, restore)

    assert delivered(stage, D) == {tuple(range(20))}


@pytest.mark.parametrize("starts", [EARLIEST, LATEST])
def test_a_partition_that_was_found_since_is_read_from_its_beginning(
    comes_back: Back, starts: OffsetsInitializer
) -> None:
    stage = running(source("c", "d", starting_offsets=starts))
    restore = copied(stage.drivers["0"])
    stage.topic("t", 3, cluster="d", end=4).looks_again().adopts()
    assert delivered(stage, [("d", "t", 2)]) == {(0, 1, 2, 3)}

    comes_back(stage, restore)

    assert delivered(stage, [("d", "t", 2)]) == {(0, 1, 2, 3)}
    first = 0 if starts == EARLIEST else 10
    assert delivered(stage, D) == {tuple(range(first, 15))}


def test_with_several_hosts_what_the_copy_lacks_continues_where_it_was() -> None:
    """Another host may have read it since, and no one can tell."""
    stage = Stage(readers=2, hosts=2).topic("t", 2, end=10).running()
    restore = copied(stage.drivers["0"])
    stage.topic("t", 3, end=4).looks_again().adopts().adopts()
    [name] = [n for n, driver in stage.drivers.items() if (("c", "t", 2), 0) in driver.delivered]
    assert name == "0"

    restore()
    stage.operator.see_reports()
    stage.adopts().adopts()

    assert stage.positions()["c", "t", 2] == 4


def test_what_another_host_had_when_the_copy_was_made_continues_where_it_was() -> None:
    """The copy lacks what that host read then, and its records were delivered."""
    stage = Stage(readers=2, hosts=2).topic("t", 4, end=10).running()
    others = {s for s in stage.owners if s not in stage.read(0)}
    restore = copied(stage.drivers["0"])
    stage.operator.handle(HostsChanged(("0",)))
    for _ in range(4):
        stage.adopts()
    stage.more(5).adopts(0)
    assert set(stage.state.hosts) == {"0"}
    assert others
    assert {stage.positions()[s] for s in others} == {15}

    restore()
    stage.operator.see_reports()

    assert {stage.positions()[s] for s in others} == {15}
