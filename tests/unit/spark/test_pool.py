"""Consumers that one worker keeps: how many are made, closed and handed on."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from balanced_source.connectors.kafka import KafkaCluster
from balanced_source_adapters.kafka.config import NoSecrets
from balanced_source_spark.kafka import consumers
from balanced_source_spark.kafka.consumers import borrowed_consumer
from balanced_source_spark.kafka.pool import MAX_KEPT, Pool
from balanced_source_spark.kafka.settings import RangeReaderSettings, consumer_config
from testbed.waiting import wait_until

NOWHERE = KafkaCluster(name="c", bootstrap_servers="127.0.0.1:1")


@dataclass
class Consumer:
    """Notes who used it."""

    users: list[int] = field(default_factory=list)
    is_closed: bool = False
    is_broken: bool = False
    handed_on: int = 0
    refuses: bool = False

    def begin(self) -> None:
        if self.refuses:
            raise OSError("Local: Erroneous state")

    def close(self) -> None:
        self.is_closed = True
        if self.is_broken:
            raise OSError("cannot close")


class Worker:
    """A pool and everything that it made."""

    def __init__(self) -> None:
        self.made: list[Consumer] = []
        self.fresh_refuse = False
        self.pool = Pool[Consumer](hand_on=self._hand_on, max_idle=3600.0)

    def read(self, reader: int, key: str = "cluster") -> Consumer:
        with self.pool.borrowed(key, self._make, owner=reader, begin=Consumer.begin) as consumer:
            consumer.users.append(reader)
        return consumer

    def _make(self) -> Consumer:
        self.made.append(Consumer(refuses=self.fresh_refuse))
        return self.made[-1]

    @staticmethod
    def _hand_on(consumer: Consumer) -> None:
        consumer.handed_on += 1


@pytest.mark.parametrize("readers", [1, MAX_KEPT, MAX_KEPT + 1, 3 * MAX_KEPT])
def test_many_readers_of_a_worker_share_few_consumers_and_none_is_made_again(readers: int) -> None:
    """A consumer per micro-batch costs half a second, many times what a small one takes."""
    worker = Worker()
    for _ in range(10):
        for reader in range(readers):
            worker.read(reader)

    assert len(worker.made) == min(readers, MAX_KEPT)
    assert not any(consumer.is_closed for consumer in worker.made)


@pytest.mark.parametrize("is_broken", [False, True])
def test_a_kept_consumer_that_cannot_continue_is_replaced_immediately(is_broken: bool) -> None:
    """If a log is cut while unread, librdkafka gives up the partition, and refuses to seek."""
    worker = Worker()
    worker.read(0).refuses = True
    worker.made[0].is_broken = is_broken

    assert worker.read(0) is worker.made[1]

    assert worker.made[0].is_closed
    assert worker.read(0) is worker.made[1]


def test_a_new_consumer_that_cannot_begin_fails_its_reader_and_is_closed() -> None:
    worker = Worker()
    worker.fresh_refuse = True

    with pytest.raises(OSError, match="Erroneous state"):
        worker.read(0)

    assert [consumer.is_closed for consumer in worker.made] == [True]
    assert worker.pool.idle() == []


def test_a_reader_gets_its_own_consumer_and_what_was_fetched_with_it() -> None:
    worker = Worker()
    for _ in range(3):
        for reader in range(MAX_KEPT):
            worker.read(reader)

    assert [set(consumer.users) for consumer in worker.made] == [
        {reader} for reader in range(MAX_KEPT)
    ]
    assert not any(consumer.handed_on for consumer in worker.made)


def test_a_consumer_forgets_before_another_reader_uses_it() -> None:
    worker = Worker()
    for reader in range(MAX_KEPT + 1):
        worker.read(reader)

    assert [consumer.handed_on for consumer in worker.made] == [1, 0, 0, 0]


def test_a_consumer_with_other_settings_is_not_handed_on() -> None:
    worker = Worker()
    for reader in range(MAX_KEPT):
        worker.read(reader)
    worker.read(0, key="another cluster")

    assert [consumer.is_closed for consumer in worker.made] == [True, False, False, False, False]


def test_idle_consumers_are_closed_even_if_one_cannot_be() -> None:
    worker = Worker()
    for reader in range(MAX_KEPT):
        worker.read(reader)
    worker.made[0].is_broken = True

    worker.pool.sweep(float("inf"))

    assert all(consumer.is_closed for consumer in worker.made)
    assert worker.pool.idle() == []


@pytest.fixture
def threads() -> Iterator[int]:
    """Threads of this process before the test, without kept consumers."""
    consumers._pool.sweep(float("inf"))
    with borrowed_consumer({"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "log_level": 0}):
        pass  # starts the thread that sweeps
    consumers._pool.sweep(float("inf"))
    before = count_threads()
    yield before
    consumers._pool.sweep(float("inf"))


def count_threads() -> int:
    return len(list(Path("/proc/self/task").iterdir()))


def test_rescales_do_not_pile_up_consumers_of_the_python_reader(threads: int) -> None:
    """Client ids and memory shares change with the number of readers, and so do the settings."""
    most = 0
    for parallelism in range(1, 13):
        for reader in range(parallelism):
            config = consumer_config(NOWHERE, NoSecrets(), client_id=f"r-{reader}") | {
                "log_level": 0
            }
            settings = RangeReaderSettings(cluster="c", config=config, splits=64 // parallelism)
            with borrowed_consumer(settings.consumer(queue_per_split=False)):
                most = max(most, count_threads() - threads)
    per_consumer = 8  # more than any has: its main thread, one per broker, and a background thread
    assert most <= (MAX_KEPT + 1) * per_consumer
    assert len(consumers._pool.idle()) <= MAX_KEPT

    consumers._pool.sweep(float("inf"))
    wait_until(lambda: count_threads() <= threads, 30, "the threads of closed consumers to end")


def test_consumers_of_tasks_that_run_at_once_are_different() -> None:
    worker, met = Worker(), threading.Barrier(3)
    seen: list[Consumer] = []

    def task(reader: int) -> None:
        with worker.pool.borrowed("cluster", worker._make, owner=reader) as consumer:
            seen.append(consumer)
            met.wait(30)

    tasks = [threading.Thread(target=task, args=(reader,)) for reader in range(3)]
    for thread in tasks:
        thread.start()
    for thread in tasks:
        thread.join()
    assert len({id(consumer) for consumer in seen}) == 3
