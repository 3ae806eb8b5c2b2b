"""Two real clusters under a running query.

One does not answer at the start, then it does, dies, and comes back.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyspark.sql import SparkSession

from balanced_source_adapters.kafka import client as kafka_client
from balanced_source_operator.local import LocalOperator
from support.builders import spec_json
from support.queries import Collector, start, wait_failed
from testbed.kafka import KafkaCluster
from testbed.waiting import wait_until

pytestmark = pytest.mark.thorough

QUICK = {"socket.connection.setup.timeout.ms": "1000"}
PATIENCE = 120.0


class TwoClusters:
    """The broker of all tests, and another one that comes and goes.

    One topic on both, and a query that reads it.
    """

    def __init__(
        self, spark: SparkSession, folder: Path, brokers: dict[str, KafkaCluster], topic: str
    ) -> None:
        self.brokers, self.topic = brokers, topic
        self.sink, self.produced = Collector(), Counter[tuple[str, int]]()
        self._spark, self._folder = spark, folder
        self.write()
        self.operator = LocalOperator(folder / "source.yaml", folder / "documents")
        self.operator.start()
        self.query = self.start_query()

    def start_query(self) -> Any:
        folder = self._folder
        self.query = start(
            self._spark, self.sink, folder / "ck", assignmentDir=str(folder / "documents")
        )
        return self.query

    def write(self, *, active: bool = True) -> None:
        """The spec; `active` is about the other cluster."""
        servers = {name: broker.bootstrap for name, broker in self.brokers.items()}
        kafka = {
            "clusters": [
                {"name": "main", "bootstrapServers": servers["main"]},
                {
                    "name": "other",
                    "bootstrapServers": servers["other"],
                    "properties": QUICK,
                    "active": active,
                },
            ],
            "subscription": {"topics": [self.topic]},
            "discovery": {"interval": "1s", "failureThreshold": 2},
        }
        temporary = self._folder / "source.new"
        temporary.write_text(
            yaml.safe_dump({"spec": spec_json(parallelism=2, source={"kafka": kafka})})
        )
        temporary.replace(self._folder / "source.yaml")

    def produce(self, name: str, records: int, partitions: Iterable[int] = (0, 1)) -> None:
        for partition in partitions:
            self.brokers[name].admin.produce(self.topic, [b"x"] * records, partition=partition)
            self.produced[name, partition] += records

    def until(self, done: Callable[[], object], what: str) -> None:
        """Wait, with an operator that follows its files and a query that must not fail."""

        def is_done() -> bool:
            self.operator.look()
            assert self.query.exception() is None, str(self.query.exception())
            return bool(done())

        wait_until(is_done, PATIENCE, what)

    def reads(self, what: str, *, but: int = 0) -> None:
        self.until(lambda: len(self.sink.rows) >= self.produced.total() - but, what)

    def takes_out(self) -> None:
        """While no query runs."""
        self.write(active=False)
        wait_until(
            lambda: self.operator.look() or self.owned == {"main"},
            PATIENCE,
            "the cluster to be taken out",
        )

    @property
    def problems(self) -> set[str]:
        return set(self.operator.coordinator.enumerator.problems())

    @property
    def owners(self) -> dict[Any, int]:
        return dict(self.operator.coordinator.state.owners)

    @property
    def owned(self) -> set[str]:
        return {str(split[0]) for split in self.owners}

    def check(self) -> None:
        got = Counter((row.cluster, row.partition, row.offset) for row in self.sink.rows)
        assert got == Counter(
            (c, p, offset) for (c, p), count in self.produced.items() for offset in range(count)
        )


@pytest.fixture
def two(
    spark: SparkSession,
    tmp_path: Path,
    kafka: KafkaCluster,
    topic: str,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[TwoClusters]:
    """The other cluster does not run yet; where it will be is known.

    The operator is quick to give up a request.
    """
    monkeypatch.setattr(kafka_client, "REQUEST_TIMEOUT", 3.0)
    with ExitStack() as stack:
        other = KafkaCluster("other", tmp_path, heap="256m")
        stack.push(other)
        made = TwoClusters(spark, tmp_path, {"main": kafka, "other": other}, topic)
        stack.callback(made.operator.close)
        yield made
        made.query.stop()


@pytest.mark.scenario("D26")
def test_an_absent_cluster_never_delays_the_other_one_and_continues_where_it_was(
    two: TwoClusters,
) -> None:
    """Away at the start, and later; told after two failures.

    Taken out with a micro-batch that is to be read again.
    """
    two.produce("main", 50)
    two.reads("the records of the cluster that answers")
    two.until(lambda: two.problems == {"other"}, "two failures to be told")
    assert two.owned == {"main"}

    two.brokers["other"].start()
    two.brokers["other"].admin.create_topic(two.topic, partitions=2)
    two.produce("other", 30)
    two.reads("the records of the cluster that came")
    two.until(lambda: not two.problems, "nothing to tell any more")

    two.brokers["other"].kill()
    owners = two.owners
    two.produce("main", 50)
    two.reads("records while the other cluster is away")
    two.until(lambda: two.problems == {"other"}, "its loss to be told")
    two.produce("main", 50)
    two.reads("more of them")
    assert two.owners == owners, "being away is no reason to move anything"

    two.brokers["other"].start_node()
    two.produce("other", 30)
    two.reads("what came after the return")
    two.until(lambda: not two.problems, "nothing to tell any more")

    two.sink.fail_before = lambda _: True
    # one: of several, the micro-batch might be planned with the first few
    two.produce("other", 1, partitions=[0])
    wait_failed(two.query)
    two.takes_out()
    two.sink.fail_before = lambda _: False
    two.start_query()
    two.reads("the micro-batch that was planned before")
    two.produce("other", 20)
    two.produce("main", 20)
    two.reads("the cluster that is left", but=40)
    two.write()
    two.reads("what came while it was out")

    two.check()
