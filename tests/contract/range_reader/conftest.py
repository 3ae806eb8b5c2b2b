"""A real broker, a topic for each test, and the reader under test."""

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import KafkaException, Producer

from balanced_source.connectors.kafka import KafkaCluster as ClusterSpec
from balanced_source.host import SplitRange
from balanced_source_adapters.kafka.config import NoSecrets
from balanced_source_spark.kafka.settings import RangeReaderSettings, consumer_config
from testbed.kafka import KafkaCluster
from testbed.waiting import wait_until

from .readers import READERS, ReadRanges, is_there

_names = itertools.count(1)


@pytest.fixture(scope="package")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    """Compacts at once, so that a test need not wait for it."""
    eager = {"log.cleaner.backoff.ms": "100", "log.initial.task.delay.ms": "100"}
    with KafkaCluster("main", tmp_path_factory.mktemp("kafka"), properties=eager) as cluster:
        yield cluster


@dataclass
class Reader:
    """The reader under test at one topic."""

    read: ReadRanges
    kafka: KafkaCluster
    topic: str
    properties: dict[str, str] = field(default_factory=dict)
    stall: float = 30.0
    bootstrap: str | None = None

    def settings(self) -> RangeReaderSettings:
        cluster = ClusterSpec(
            name="main",
            bootstrap_servers=self.bootstrap or self.kafka.bootstrap,
            properties={"log_level": "0", **self.properties},
        )
        config = consumer_config(cluster, NoSecrets(), client_id=f"contract-{self.topic}")
        return RangeReaderSettings(cluster="main", config=config, stall=self.stall)

    def batches(
        self,
        ranges: Mapping[int, tuple[int, int]],
        topic: str | None = None,
        term: int | None = None,
        identity: str | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Ranges by partition, planned under a leader epoch, of the topic with an id."""
        pieces = [
            SplitRange(
                split_id=("main", topic or self.topic, partition),
                start=start,
                end=end,
                term=term,
                identity=identity,
            )
            for partition, (start, end) in ranges.items()
        ]
        return self.read(pieces, self.settings())

    def rows(
        self,
        ranges: Mapping[int, tuple[int, int]],
        topic: str | None = None,
        term: int | None = None,
        identity: str | None = None,
    ) -> list[dict[str, Any]]:
        batches = self.batches(ranges, topic, term, identity)
        return [row for batch in batches for row in batch.to_pylist()]

    def offsets(self, *ranges: Mapping[int, tuple[int, int]]) -> Counter[tuple[int, int]]:
        """How often each (partition, offset) came.

        One call of the reader after the other, in one process.
        """
        return Counter(
            (row["partition"], row["offset"]) for each in ranges for row in self.rows(each)
        )

    def produce(self, count: int, *, partition: int = 0, **config: Any) -> None:
        """Records with their number as value."""
        producer = Producer({"bootstrap.servers": self.kafka.bootstrap, **config})
        for number in range(count):
            producer.produce(self.topic, str(number).encode(), partition=partition)
            producer.poll(0)
        assert producer.flush(30) == 0

    def transaction(self, count: int, *, partition: int = 0, commit: bool = True) -> None:
        """Records in their own transaction, and its marker, which brokers write a little later."""
        end = self.end(partition) + count + 1
        producer = self.open_transaction(count, partition=partition)
        if commit:
            producer.commit_transaction()
        else:
            producer.abort_transaction()
        wait_until(lambda: self.end(partition) == end, 30, "the marker of the transaction")

    def open_transaction(self, count: int, *, partition: int = 0) -> Producer:
        config = {
            "bootstrap.servers": self.kafka.bootstrap,
            "transactional.id": f"t-{next(_names)}",
        }
        producer = Producer(config)
        producer.init_transactions()
        producer.begin_transaction()
        for number in range(count):
            producer.produce(self.topic, str(number).encode(), partition=partition)
        assert producer.flush(30) == 0
        return producer

    def end(self, partition: int = 0) -> int:
        """Next offset of the partition; the leader of a new topic may need a moment."""

        def found() -> tuple[int, int] | None:
            try:
                return self.kafka.admin.offsets(self.topic)[partition]
            except KafkaException:
                return None

        return int(wait_until(found, 30, f"the end of {self.topic}")[1])


@pytest.fixture
def topic(kafka: KafkaCluster) -> str:
    """With three partitions."""
    name = f"topic-{next(_names)}"
    kafka.admin.create_topic(name, partitions=3)
    return name


@pytest.fixture(params=READERS)
def reader(request: pytest.FixtureRequest, kafka: KafkaCluster, topic: str) -> Reader:
    if not is_there(request.param):
        pytest.skip(f"the {request.param} reader is not installed")
    return Reader(READERS[request.param], kafka, topic)


def exactly(ranges: Mapping[int, tuple[int, int]]) -> Counter[tuple[int, int]]:
    """Every offset of the ranges, once."""
    return Counter((p, o) for p, (start, end) in ranges.items() for o in range(start, end))
