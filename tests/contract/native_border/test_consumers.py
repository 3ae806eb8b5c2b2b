"""How many consumers a worker makes for its readers, and what they hold.

Brokers are librdkafka's mock cluster.
"""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import pytest
from confluent_kafka import Producer

from balanced_source.connectors.kafka import KafkaCluster
from balanced_source.host import SplitRange
from balanced_source_adapters.kafka.config import NoSecrets
from balanced_source_spark.kafka import consumers, native, range_reader
from balanced_source_spark.kafka.pool import MAX_KEPT
from balanced_source_spark.kafka.settings import (
    RangeReaderSettings,
    ReadStalledError,
    consumer_config,
)
from balanced_source_spark.kafka.topic_watch import Interrupt

pytestmark = pytest.mark.skipif(
    not native.is_available(), reason="the native reader is not installed"
)

TOPIC: Final = "shared"
READERS: Final = 3 * MAX_KEPT
RECORDS: Final = 40
BATCH: Final = 10


@pytest.fixture(scope="module")
def cluster() -> Iterator[KafkaCluster]:
    """Four partitions; the brokers live as long as the producer."""
    mock = Producer({"bootstrap.servers": "", "test.mock.num.brokers": 1, "log_level": 0})
    for partition in range(4):
        for number in range(RECORDS):
            mock.produce(TOPIC, str(number).encode(), partition=partition)
    assert mock.flush(30) == 0
    broker = next(iter(mock.list_topics(timeout=30).brokers.values()))
    yield KafkaCluster(
        name="c", bootstrap_servers=f"{broker.host}:{broker.port}", properties={"log_level": "0"}
    )
    mock.flush(0)


class Made:
    """Counts what is made and closed, and which partitions are forgotten."""

    def __init__(self, make: Any) -> None:
        self._make = make
        self.count = 0

    def __call__(self, *args: Any, **settings: Any) -> Any:
        self.count += 1
        return self._make(*args, **settings)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Iterator[Made]:
    native._pool.sweep(float("inf"))
    module = __import__(native.MODULE)
    counter = Made(module.RangeReader)
    monkeypatch.setattr(module, "RangeReader", counter)
    yield counter
    native._pool.sweep(float("inf"))


def read(
    cluster: KafkaCluster, reader: int, start: int, *, partition: int, by: Any = native.read_ranges
) -> list[tuple[int, int]]:
    config = consumer_config(cluster, NoSecrets(), client_id=f"reader-{reader}")
    settings = RangeReaderSettings(
        cluster="c", config=config, columns=("partition", "offset"), reader=reader, stall=30
    )
    piece = SplitRange(split_id=("c", TOPIC, partition), start=start, end=start + BATCH)
    batches = by([piece], settings)
    return [(row["partition"], row["offset"]) for batch in batches for row in batch.to_pylist()]


class Soon(Interrupt):
    """Interrupts a read as soon as it can be."""

    @contextmanager
    def calls(self, stop: Callable[[], Any]) -> Iterator[None]:
        with super().calls(stop):
            threading.Thread(target=self.set).start()
            yield


@pytest.mark.parametrize(
    "by", [native.read_ranges, range_reader.read_ranges], ids=["native", "python"]
)
def test_a_read_that_is_interrupted_from_another_thread_ends(
    cluster: KafkaCluster, by: Any
) -> None:
    """It waits for records that do not come; the next read has a new consumer."""
    config = consumer_config(cluster, NoSecrets(), client_id="interrupted")
    interrupt = Soon()
    settings = RangeReaderSettings(
        cluster="c", config=config, reader=77, stall=3600, interrupt=interrupt
    )
    if by is range_reader.read_ranges:  # looks by itself
        interrupt.set()

    with pytest.raises(ReadStalledError, match="the read was interrupted"):
        list(by([SplitRange(split_id=("c", TOPIC, 0), start=0, end=RECORDS + 1)], settings))

    assert len(read(cluster, 77, 0, partition=0, by=by)) == BATCH


@pytest.mark.parametrize("readers", [1, MAX_KEPT, READERS])
def test_readers_of_a_worker_share_consumers_and_read_exactly_their_ranges(
    cluster: KafkaCluster, made: Made, readers: int
) -> None:
    """With a consumer for each task, a small micro-batch took half a second instead of 24 ms."""
    rows: Counter[tuple[int, int, int]] = Counter()
    for start in range(0, RECORDS, BATCH):
        for reader in range(readers):
            rows.update(
                (reader, *row) for row in read(cluster, reader, start, partition=reader % 4)
            )

    assert rows == Counter(
        (reader, reader % 4, offset) for reader in range(readers) for offset in range(RECORDS)
    )
    assert made.count == min(readers, MAX_KEPT)
    assert len(native._pool.idle()) == min(readers, MAX_KEPT)


def test_the_python_reader_reads_exactly_its_ranges_with_consumers_of_others(
    cluster: KafkaCluster,
) -> None:
    rows: Counter[tuple[int, int, int]] = Counter()
    for start in range(0, RECORDS, BATCH):
        for reader in range(READERS):
            found = read(cluster, reader, start, partition=reader % 4, by=range_reader.read_ranges)
            rows.update((reader, *row) for row in found)

    assert rows == Counter(
        (reader, reader % 4, offset) for reader in range(READERS) for offset in range(RECORDS)
    )
    assert len(consumers._pool.idle()) <= MAX_KEPT
    consumers._pool.sweep(float("inf"))


def test_partitions_with_another_reader_stop_being_fetched(
    cluster: KafkaCluster, made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a rescale a kept consumer would fetch and hold what its reader does not own."""
    monkeypatch.setattr(native, "FORGET_AFTER", 0.0)
    for partition in range(4):
        read(cluster, 0, 0, partition=partition)

    assert [reader.forget_idle(3600.0) for reader in native._pool.idle()] == [0]
    assert made.count == 1


def test_partitions_that_are_read_are_kept(cluster: KafkaCluster, made: Made) -> None:
    for partition in range(4):
        read(cluster, 0, 0, partition=partition)

    assert [reader.forget_idle(3600.0) for reader in native._pool.idle()] == [4]
    assert made.count == 1
