"""A transaction that no one ends, on a real broker."""

from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from balanced_source.api import Problem, ProblemKey, SplitId
from balanced_source.connectors.kafka import KafkaCluster as Cluster
from balanced_source.host.ends import Mark
from balanced_source_adapters.kafka.admin import KafkaAdmin
from balanced_source_spark.kafka.open_transactions import PATIENCE, OpenTransactions
from testbed.kafka import KafkaCluster
from testbed.waiting import wait_until

pytestmark = pytest.mark.integration


@pytest.fixture
def producer(kafka: KafkaCluster, topic: str) -> Iterator[Producer]:
    """A transactional producer with an open transaction of five records behind three others."""
    kafka.admin.produce(topic, [b"x"] * 3, partition=0)
    made = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": f"{topic}-t"})
    made.init_transactions(30)
    made.begin_transaction()
    for _ in range(5):
        made.produce(topic, b"y", partition=0)
    assert made.flush(30) == 0
    yield made
    made.abort_transaction(30)


def test_records_behind_an_open_transaction_are_reported_and_read_when_it_ends(
    kafka: KafkaCluster, topic: str, producer: Producer
) -> None:
    cluster = Cluster(name="main", bootstrap_servers=kafka.bootstrap)
    split: SplitId = ("main", topic, 0)
    marks, said, now = {split: Mark(position=3)}, list[Problem | None](), [0.0]
    admin = KafkaAdmin()

    def keep(_: ProblemKey, problem: Problem | None) -> None:
        said.append(problem)

    transactions = OpenTransactions(keep, admin.high_watermarks, clock=lambda: now[0])
    assert admin.ends(cluster, [split])[split].end == 3
    assert admin.high_watermarks(cluster, [split]) == {split: 8}

    for now[0] in (0.0, PATIENCE, 2 * PATIENCE):
        transactions.note(cluster, admin.ends(cluster, [split]), marks)
    (problem,) = said
    assert problem is not None
    assert f"{topic}/0 offset 3" in problem.message

    producer.commit_transaction(30)
    producer.begin_transaction()
    wait_until(lambda: admin.ends(cluster, [split])[split].end == 9, 30, "the marker")
    transactions.note(cluster, admin.ends(cluster, [split]), marks)

    assert said[1:] == [None]
    admin.close()
