"""Positions for a consumer group: the newest, once, and never in anybody's way."""

import threading
from collections.abc import Mapping
from typing import Any

import pytest

from balanced_source.api import SplitId
from balanced_source.errors import TransientDiscoveryError
from balanced_source_spark.kafka.group_commits import GroupCommits
from testbed.waiting import wait_until

A: SplitId = ("one", "t", 0)
B: SplitId = ("two", "t", 0)


class Clusters:
    def __init__(self) -> None:
        self.commits: list[tuple[str, dict[SplitId, int]]] = []
        self.down: set[str] = set()
        self.gate = threading.Event()
        self.gate.set()

    def commit(self, name: str, offsets: Mapping[SplitId, int]) -> None:
        self.gate.wait(30)
        if name in self.down:
            raise TransientDiscoveryError(f"{name} is down", scope=name)
        self.commits.append((name, dict(offsets)))


@pytest.mark.scenario("H1", "H3")
def test_each_cluster_gets_its_positions_once() -> None:
    """After Spark has committed; upstream commits when a checkpoint is complete."""
    clusters = Clusters()
    commits = GroupCommits(clusters.commit, interval=0.01)

    commits.note({A: 5, B: 7})
    wait_until(lambda: len(clusters.commits) == 2, 10, "both commits")
    commits.note({A: 5, B: 8})
    wait_until(lambda: len(clusters.commits) == 3, 10, "the third commit")
    commits.close()

    assert clusters.commits == [("one", {A: 5}), ("two", {B: 7}), ("two", {B: 8})]


@pytest.mark.scenario("H2")
def test_only_the_newest_positions_are_committed() -> None:
    """What came while a commit was under way is superseded by what came after it."""
    clusters = Clusters()
    clusters.gate.clear()
    commits = GroupCommits(clusters.commit, interval=0.01)
    for offset in range(100):
        commits.note({A: offset})
    clusters.gate.set()

    wait_until(lambda: ("one", {A: 99}) in clusters.commits, 10, "the newest to be committed")
    commits.close()
    assert len(clusters.commits) <= 2


def test_a_cluster_that_is_down_is_retried_and_delays_no_other_cluster() -> None:
    clusters = Clusters()
    clusters.down = {"one"}
    commits = GroupCommits(clusters.commit, interval=0.01)

    commits.note({A: 5, B: 7})
    wait_until(lambda: ("two", {B: 7}) in clusters.commits, 10, "the other cluster")
    clusters.down = set()
    wait_until(lambda: ("one", {A: 5}) in clusters.commits, 10, "the cluster that came back")
    commits.close()


def test_remaining_offsets_are_committed_at_the_end() -> None:
    clusters = Clusters()
    commits = GroupCommits(clusters.commit, interval=3600)
    commits.note({A: 1})
    wait_until(lambda: len(clusters.commits) == 1, 10, "the first commit")
    commits.note({A: 2})
    commits.close()

    wait_until(lambda: clusters.commits[-1] == ("one", {A: 2}), 10, "the last commit")


def test_the_end_is_not_delayed_by_the_wait_for_the_next_commit() -> None:
    """A process that ends meanwhile would leave the last positions untold."""
    clusters = Clusters()
    commits = GroupCommits(clusters.commit, interval=3600)
    wake: Any = commits._wake

    def waits() -> None:
        wait_until(lambda: bool(wake._waiters), 10, "it to wait", interval=0.001)

    waits()
    commits.note({A: 1})
    wait_until(lambda: len(clusters.commits) == 1, 10, "the first commit")
    waits()
    commits.note({A: 2})
    waits()
    commits.close()

    wait_until(lambda: clusters.commits[-1] == ("one", {A: 2}), 10, "the last commit")


def test_partitions_that_are_not_held_any_more_are_forgotten() -> None:
    """Topics may be named by day."""
    clusters = Clusters()
    commits = GroupCommits(clusters.commit, interval=0.001)
    for day in range(50):
        split_id: SplitId = ("one", f"day-{day}", 0)
        commits.note({split_id: 5})
        wait_until(lambda s=split_id: s in commits._done, 10, "the commit", interval=0.001)  # type: ignore[misc]
    commits.close()

    assert commits._done == {("one", "day-49", 0): 5}
