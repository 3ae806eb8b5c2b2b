"""A transaction that holds reading up is reported, once and in words."""

from collections.abc import Collection, Mapping

import pytest

from balanced_source.api import Problem, ProblemKey, SplitId
from balanced_source.connectors.kafka import KafkaCluster
from balanced_source.errors import TransientDiscoveryError
from balanced_source.host.ends import Mark, SplitEnd
from balanced_source_spark.kafka.open_transactions import INTERVAL, PATIENCE, OpenTransactions

ONE, TWO = ("main", "orders", 0), ("main", "orders", 1)


class Cluster:
    """A cluster whose partitions are read to their ends, and a clock."""

    def __init__(self, *, isolation: str = "read_committed") -> None:
        self.cluster = KafkaCluster(
            name="main", bootstrap_servers="b:9092", properties={"isolation.level": isolation}
        )
        self.now = 1000.0
        self.committed: dict[SplitId, int] = {ONE: 10, TWO: 20}
        self.marks: dict[SplitId, int] = dict(self.committed)
        self.high: dict[SplitId, int] = dict(self.committed)
        self.is_silent = False
        self.asked: list[frozenset[SplitId]] = []
        self.said: list[Problem | None] = []
        self.transactions = OpenTransactions(self._set, self._ask, clock=lambda: self.now)

    def _set(self, key: ProblemKey, problem: Problem | None) -> None:
        assert key == ("transactions", "main")
        if not self.said or self.said[-1] != problem:
            self.said.append(problem)

    def _ask(self, _: KafkaCluster, split_ids: Collection[SplitId]) -> Mapping[SplitId, int]:
        self.asked.append(frozenset(split_ids))
        if self.is_silent:
            raise TransientDiscoveryError("no answer", scope="main")
        return {s: self.high[s] for s in split_ids}

    def looks(self, seconds: float) -> "Cluster":
        """Ends are looked up each second for some time."""
        for _ in range(int(seconds)):
            self.now += 1
            ends = {s: SplitEnd(end=end) for s, end in self.committed.items()}
            marks = {s: Mark(position=p) for s, p in self.marks.items()}
            self.transactions.note(self.cluster, ends, marks)
        return self

    @property
    def problem(self) -> Problem | None:
        return self.said[-1] if self.said else None


def opened(**more: str) -> Cluster:
    """A cluster with records behind the end of one partition."""
    cluster = Cluster(**more)
    cluster.high[ONE] = 17
    return cluster


def test_a_transaction_that_stays_open_is_reported_once() -> None:
    cluster = opened().looks(PATIENCE + INTERVAL)
    assert cluster.problem is None, "it may be a short one"

    cluster.looks(600)

    (problem,) = cluster.said
    assert problem is not None
    assert (problem.reason, problem.scope, problem.is_fatal) == ("OpenTransaction", "main", False)
    assert "orders/0 offset 10" in problem.message
    assert "orders/1" not in problem.message
    assert "kafka-transactions.sh abort" in problem.message


def test_the_message_names_few_partitions_and_counts_the_others() -> None:
    cluster = Cluster()
    ids: list[SplitId] = [("main", "orders", number) for number in range(9)]
    cluster.committed = dict.fromkeys(ids, 5)
    cluster.marks, cluster.high = dict(cluster.committed), dict.fromkeys(ids, 6)

    cluster.looks(300)

    assert cluster.problem is not None
    assert "orders/2 offset 5 and 6 more" in cluster.problem.message


def test_no_broker_is_queried_while_the_end_moves() -> None:
    cluster = opened()
    for _ in range(20):
        cluster.looks(PATIENCE - 1)
        for split_id in cluster.committed:
            cluster.committed[split_id] += 1
            cluster.marks[split_id] += 1

    assert cluster.asked == []


def test_partitions_that_are_not_read_to_their_end_are_not_asked_for() -> None:
    cluster = opened()
    cluster.marks[ONE] = 3

    cluster.looks(300)

    assert set(cluster.asked) == {frozenset({TWO})}


def test_a_cluster_is_polled_rarely() -> None:
    cluster = Cluster().looks(PATIENCE + 10 * INTERVAL)

    assert 9 <= len(cluster.asked) <= 11
    assert cluster.said == []


def test_the_problem_is_over_when_the_end_moves() -> None:
    cluster = opened().looks(300)
    cluster.committed[ONE] = 17

    cluster.looks(1)

    assert cluster.said[1:] == [None]


def test_the_problem_is_over_when_the_records_are_gone() -> None:
    """Another unclean election may cut them off."""
    cluster = opened().looks(300)
    cluster.high[ONE] = 10

    cluster.looks(INTERVAL + 1)

    assert cluster.problem is None


def test_a_transaction_that_ended_between_two_looks_is_not_counted_with_the_next_one() -> None:
    """Its marker moves the end."""
    cluster = opened()
    for _ in range(10):
        cluster.looks(PATIENCE + INTERVAL)
        cluster.committed[ONE] += 1
        cluster.marks[ONE] += 1
        cluster.high[ONE] += 1

    assert cluster.said == []


def test_readers_of_uncommitted_records_wait_for_nothing() -> None:
    cluster = opened(isolation="read_uncommitted").looks(600)

    assert cluster.asked == []
    assert cluster.said == []


def test_a_missing_answer_of_a_cluster_changes_nothing() -> None:
    cluster = opened()
    cluster.is_silent = True
    cluster.looks(300)
    assert cluster.said == []

    cluster.is_silent = False
    cluster.looks(300)
    assert cluster.problem is not None
    cluster.is_silent = True
    cluster.looks(300)

    assert cluster.problem is not None


@pytest.mark.parametrize(("clusters", "is_over"), [(["main", "main"], False), (["other"], True)])
def test_a_cluster_that_is_not_read_any_more_has_no_problem(
    clusters: list[str], is_over: bool
) -> None:
    cluster = opened().looks(300)

    cluster.transactions.keep(clusters)

    assert (cluster.problem is None) == is_over


def test_a_cluster_is_queried_once_per_interval() -> None:
    cluster = opened().looks(PATIENCE + 1)
    asked = len(cluster.asked)
    assert asked == 1

    cluster.looks(INTERVAL - 1)
    assert len(cluster.asked) == asked
    cluster.looks(1)
    assert len(cluster.asked) == asked + 1


def test_clusters_that_are_taken_out_are_forgotten() -> None:
    transactions = OpenTransactions(lambda *_: None, lambda *_: {}, clock=lambda: 0.0)
    for day in range(50):
        cluster = KafkaCluster(name=f"day-{day}", bootstrap_servers="b:9092")
        split_id: SplitId = (cluster.name, "t", 0)
        transactions._asked[cluster.name] = 0.0
        transactions.note(cluster, {split_id: SplitEnd(end=5)}, {split_id: Mark(position=5)})
        transactions.keep([cluster.name])

    assert transactions._still.keys() == transactions._asked.keys() == {"day-49"}
