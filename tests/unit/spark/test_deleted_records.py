"""Records that were deleted before they were read are no lag, and count for no limit."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from balanced_source.api import SplitId
from balanced_source.connectors.kafka import KafkaCluster, OnDataLoss, ReadLimits
from balanced_source.documents.report import UNREAD
from balanced_source.errors import TransientDiscoveryError
from balanced_source.host.ends import Mark, SplitEnd
from balanced_source_spark.kafka import log_starts
from balanced_source_spark.kafka.log_starts import FRESH, LogStarts
from support.planned_query import LOGGED, PlannedQuery, all_of
from support.world import Broker, kafka_source

A, B = ("c", "t", 0), ("c", "t", 1)
CLUSTER = KafkaCluster(name="c", bootstrap_servers="b:9092")
LIMIT = 10


def suspended(monkeypatch: pytest.MonkeyPatch, policy: OnDataLoss, **limits: Any) -> PlannedQuery:
    """Return a query that has read a few records, and whose topic has lost most of the others."""
    monkeypatch.setattr(log_starts, "FRESH", 0.0)
    broker = Broker()
    broker.create("c", "t", range(2), end=2_000)
    limited = ReadLimits(**{"max_records": LIMIT, **limits})
    query = PlannedQuery(
        source=kafka_source("c", on_data_loss=policy, limits=limited), broker=broker
    )
    query.trigger_until(lambda: query.records.total() == LIMIT, "the first records to be read")
    broker.begins = {A: 1_990, B: 1_980}
    return query


def told(query: PlannedQuery) -> tuple[int | None, int | None]:
    """Return the lag that the progress shows, and what is unread with the running micro-batch."""
    progress: Any = query.planner._runtime._progress
    return query.planner._shown["lag"], progress.metrics()[UNREAD]


@pytest.mark.parametrize("die", [None, LOGGED])
def test_they_are_passed_over_at_once(monkeypatch: pytest.MonkeyPatch, die: str | None) -> None:
    query = suspended(monkeypatch, OnDataLoss.CONTINUE)
    there = 10 + 20

    assert query.trigger(die=die)
    if die is None:
        assert told(query) == (there - LIMIT, there)
        query.planner._look_again()
        assert told(query) == (there - LIMIT, there), "while it runs"
    query.trigger_until(lambda: query.records.total() == there + LIMIT, "all to be read")
    assert not query.trigger()
    assert told(query)[0] == 0

    assert len(query.batches) == 1 + 3
    assert all(len(query.batches[number]) == LIMIT for number in range(1, len(query.batches)))
    rest = query.records - all_of(query.broker)
    assert rest.total() == LIMIT, "what was read before they were deleted"
    assert query.hooks.numbers()["skippedOffsets"] == 1_990 - 5 + 1_980 - 5
    query.close()


def test_without_consent_they_are_not_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks end with an error that names them."""
    query = suspended(monkeypatch, OnDataLoss.FAIL)

    assert query.trigger()
    assert query.last.positions == {A: 10, B: 10}
    query.close()


def test_a_log_that_is_empty_has_no_lag(monkeypatch: pytest.MonkeyPatch) -> None:
    query = suspended(monkeypatch, OnDataLoss.CONTINUE)
    query.broker.begins = dict(query.broker.ends)

    assert query.trigger()
    assert query.last.positions == query.broker.ends, "so that the loss is counted"
    assert told(query) == (0, 0)
    assert not query.batches[len(query.batches) - 1]
    assert not query.trigger()
    query.close()


def test_a_partition_that_falls_silent_stays_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """All others would wait for it."""
    query = suspended(monkeypatch, OnDataLoss.CONTINUE)
    before = query.last.positions[A]
    query.planner._look_again()
    whole = query.admin.ends

    def partly(cluster: KafkaCluster, split_ids: Any, marks: Any) -> dict[SplitId, SplitEnd]:
        answers = whole(cluster, [s for s in split_ids if s != A], marks)
        raise TransientDiscoveryError("no leader", scope=cluster.name, answers=answers)

    monkeypatch.setattr(query.admin, "ends", partly)
    query.trigger_until(lambda: query.last.positions[B] == 2_000, "the other one to be read")
    assert query.last.positions[A] == before
    query.close()


def test_a_query_that_ends_by_itself_stops_where_it_began(monkeypatch: pytest.MonkeyPatch) -> None:
    query = suspended(monkeypatch, OnDataLoss.CONTINUE)
    query.planner.prepareForTriggerAvailableNow()
    query.broker.ends = dict.fromkeys(query.broker.ends, 9_000)
    query.broker.begins = dict.fromkeys(query.broker.begins, 5_000)
    while query.trigger():
        pass
    assert query.last.positions == {A: 2_000, B: 2_000}
    query.close()


def test_too_few_records_wait_also_behind_those_that_were_deleted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    query = suspended(monkeypatch, OnDataLoss.CONTINUE, min_records=5)
    query.broker.begins = {A: 1_999, B: 1_999}

    assert query.trigger()
    assert query.last.positions == {A: 1_999, B: 1_999}
    assert told(query) == (2, 2)
    assert not query.trigger(), "two of five"
    query.close()


class Cluster:
    """Answers where logs begin, and counts the questions."""

    def __init__(self, **begins: int) -> None:
        self.begins_at = {("c", "t", int(name[1:])): first for name, first in begins.items()}
        self.asked: list[list[SplitId]] = []
        self.now = 0.0
        self.starts = LogStarts(self.begins, clock=lambda: self.now)
        self.is_down = False

    def begins(self, cluster: KafkaCluster, split_ids: Any) -> Mapping[SplitId, int]:
        self.asked.append(list(split_ids))
        answers = {s: self.begins_at[s] for s in split_ids if s in self.begins_at}
        if self.is_down:
            raise TransientDiscoveryError("silent", scope=cluster.name, answers=answers)
        return answers

    def firsts(self, positions: Mapping[SplitId, int], identity: str = "id") -> dict[SplitId, int]:
        ends = dict.fromkeys((A, B), SplitEnd(end=100, identity=identity, term=1))
        marks = {s: Mark(position=p, identity=identity) for s, p in positions.items()}
        joined = self.starts.joined(CLUSTER, ends, marks)
        assert {s: replace(a, first=None) for s, a in joined.items()} == ends
        return {s: a.first for s, a in joined.items() if a.first is not None}


def test_only_partitions_with_something_to_read_are_asked_and_not_each_time() -> None:
    cluster = Cluster(p0=50, p1=0)

    assert cluster.firsts({A: 100, B: 100}) == {}
    assert cluster.asked == []
    cluster.now += FRESH
    assert cluster.firsts({A: 5, B: 100}) == {A: 50}
    cluster.begins_at[A] = 60
    assert cluster.firsts({A: 5, B: 5}) == {A: 50}
    assert cluster.asked == [[A]]
    cluster.now += FRESH
    assert cluster.firsts({A: 5, B: 5}) == {A: 60}
    assert cluster.asked == [[A], [A, B]]


def test_the_start_of_a_topic_says_nothing_of_another_one_with_its_name() -> None:
    cluster = Cluster(p0=50, p1=50)

    assert cluster.firsts({A: 5, B: 5}) == {A: 50, B: 50}
    assert cluster.firsts({A: 0, B: 0}, identity="another") == {}


def test_what_partitions_answer_counts_although_others_are_silent() -> None:
    cluster = Cluster(p0=50)
    cluster.is_down = True

    assert cluster.firsts({A: 5, B: 5}) == {A: 50}


def test_starts_of_clusters_that_are_taken_out_are_forgotten() -> None:
    starts = LogStarts(lambda _, split_ids: dict.fromkeys(split_ids, 50), clock=lambda: 0.0)
    for day in range(50):
        cluster = KafkaCluster(name=f"day-{day}", bootstrap_servers="b:1")
        split_id: SplitId = (cluster.name, "t", 0)
        ends, marks = {split_id: SplitEnd(end=100)}, {split_id: Mark(position=5)}
        assert starts.joined(cluster, ends, marks)[split_id].first == 50
        starts.keep([cluster.name, cluster.name])

    assert starts._asked.keys() == starts._known.keys() == {"day-49"}
    starts.keep(pytest.fail(str(name)) for name in range(1))
