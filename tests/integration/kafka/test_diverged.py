"""Two leaders in a row that never saw each other's newest records.

The first one returns (KIP-279's case).
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from pyspark.sql import SparkSession

from support.queries import Collector, start, wait_rows
from testbed.kafka import KafkaCluster
from testbed.waiting import wait_until

pytestmark = pytest.mark.thorough

TOPIC = "diverged"
PATIENCE = 120.0


class TwoLeaders:
    """A partition on nodes 1 and 2; node 3 only keeps the cluster able to decide."""

    def __init__(self, folder: Path) -> None:
        self.cluster = KafkaCluster("diverged", folder, nodes=3, heap="256m")
        self.cluster.start()
        self.cluster.admin.place_topic(TOPIC, [[1, 2]])
        self.cluster.admin.set_config(
            TOPIC, {"unclean.leader.election.enable": "true", "min.insync.replicas": "1"}
        )
        self._wait_in_sync({1, 2})

    def produce(self, value: bytes, count: int) -> None:
        self.cluster.admin.produce(TOPIC, [value] * count, partition=0)

    def leave_alone(self, node: int, without: int) -> None:
        """End one node, so that the other one has what comes now for itself."""
        self.cluster.kill(without)
        self._wait_in_sync({node})

    def lead_instead(self, node: int, of: int) -> None:
        """End the leader, and start the other node, which has missed its newest records."""
        self.cluster.kill(of)
        self.cluster.start_node(node)
        self._wait(self.cluster.admin.leaders, {node}, "the unclean leader")

    def _wait_in_sync(self, nodes: set[int]) -> None:
        self._wait(self.cluster.admin.in_sync, nodes, f"{nodes} to be in sync")

    def _wait(self, ask: Callable[[str], set[int]], wanted: set[int], what: str) -> None:
        def holds() -> bool:
            with suppress(KafkaException):  # of the node that was killed
                return ask(TOPIC) == wanted
            return False

        wait_until(holds, PATIENCE, what)


@pytest.fixture
def leaders(tmp_path: Path) -> Iterator[TwoLeaders]:
    made = TwoLeaders(tmp_path / "brokers")
    yield made
    made.cluster.end(None)


def test_the_records_of_a_leader_that_returns_are_read_from_where_both_logs_part(
    spark: SparkSession, leaders: TwoLeaders, tmp_path: Path
) -> None:
    """The first leader's log is longer than the second one's.

    Its end alone says that nothing was cut.
    """
    options = {
        "kafka.bootstrap.servers": leaders.cluster.bootstrap,
        "subscribe": TOPIC,
        "startingOffsets": "earliest",
    }
    leaders.produce(b"common", 10)
    sink = Collector()
    query = start(spark, sink, tmp_path / "ck", **options, failOnDataLoss="false")
    try:
        wait_rows(query, sink, 10, PATIENCE)
        query.stop()
        leaders.leave_alone(1, without=2)
        leaders.produce(b"first", 5)
        leaders.lead_instead(2, of=1)
        leaders.produce(b"second", 3)
        query = start(spark, sink, tmp_path / "ck", **options, failOnDataLoss="false")
        wait_rows(query, sink, 13, PATIENCE)

        leaders.lead_instead(1, of=2)

        wait_rows(query, sink, 18, PATIENCE)
    finally:
        query.stop()
    assert Counter((bytes(row.value), row.offset) for row in sink.rows) == Counter(
        [(b"common", offset) for offset in range(10)]
        + [(b"second", offset) for offset in range(10, 13)]
        + [(b"first", offset) for offset in range(10, 15)]
    )
