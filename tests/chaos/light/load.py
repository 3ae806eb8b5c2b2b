"""Records for one cluster: plain ones and transactions, of which some are aborted.

What counts is the brokers' log.
"""

import contextlib
import random
import threading
import uuid
from collections.abc import Iterator
from typing import Any, Final

from confluent_kafka import KafkaException, Producer

_TICK: Final = 0.1
_FLUSH: Final = 30.0
_ABORTED: Final = 0.3
_SECONDS: Final = 60
"""Of the rate; no more is produced, so that a slow machine has an end of it too."""


class Load:
    """Produces in a thread to the partitions that `topics` names, which may change.

    Args:
        cluster: name; a part of each payload.
        bootstrap: brokers.
        topics: topic → number of partitions.
        rate: records per second.
        seed: of all choices.
    """

    def __init__(
        self, cluster: str, bootstrap: str, topics: dict[str, int], *, rate: int, seed: int
    ) -> None:
        self.cluster = cluster
        self._bootstrap = bootstrap
        self._topics = topics
        self._per_tick = max(1, round(rate * _TICK))
        self._limit = self._left = rate * _SECONDS
        self._dice = random.Random(f"load-{cluster}-{seed}")
        self._lock = threading.RLock()
        self._stop = threading.Event()
        self._is_paused = False
        # not idempotent: such a producer may end for good when leaders change; repeated records are
        # further records
        self._plain: Any = Producer({**self._settings(), "enable.idempotence": False})
        self._transactional: Any = None
        self._thread = threading.Thread(target=self._run, name=f"load-{cluster}", daemon=True)

    def fill(self, count: int) -> None:
        """Produce records and wait until the brokers have them."""
        for _ in range(count):
            self._send(self._plain)
            self._plain.poll(0)
        self._plain.flush(_FLUSH)

    def settle(self, topic: str) -> None:
        """Produce a record to each partition, and wait until all replicas in sync have it."""
        producer: Any = Producer({**self._settings(), "acks": "all"})
        for partition in range(self.topics[topic]):
            producer.produce(
                topic, f"{self.cluster}/{topic}/{uuid.uuid4().hex}", partition=partition
            )
        producer.flush(_FLUSH)

    def burst(self, topic: str, count: int) -> None:
        """Produce records that only the leaders have to have."""
        producer: Any = Producer({**self._settings(), "enable.idempotence": False, "acks": 1})
        for number in range(count):
            partition = number % self.topics[topic]
            producer.produce(
                topic, f"{self.cluster}/{topic}/{uuid.uuid4().hex}", partition=partition
            )
        producer.flush(_FLUSH)

    def start(self) -> None:
        """Begin to produce."""
        self._thread.start()

    def pause(self) -> None:
        """Produce nothing until `resume`.

        Nothing is on its way and no transaction is open afterwards.
        """
        with self._lock:
            self._is_paused = True
            self._plain.flush(_FLUSH)

    def resume(self) -> None:
        """Produce again after `pause`, as much as at the start."""
        self._is_paused, self._left = False, self._limit

    def stop(self) -> None:
        """End producing; nothing is on its way and no transaction is open afterwards."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        self._plain.flush(_FLUSH)

    @contextlib.contextmanager
    def without(self, topic: str) -> Iterator[None]:
        """Produce nothing to a topic for a while; afterwards `topics` may name it again."""
        with self._lock:
            self._topics.pop(topic, None)
            self._plain.flush(_FLUSH)
        yield

    @contextlib.contextmanager
    def held(self, topic: str) -> Iterator[None]:
        """Produce nothing to a topic for a moment, with nothing on its way; then as before."""
        count = self.topics[topic]
        with self.without(topic):
            try:
                yield
            finally:
                self.set_partitions(topic, count)

    def set_partitions(self, topic: str, count: int) -> None:
        """Produce to so many partitions of a topic from now on."""
        with self._lock:
            self._topics[topic] = count

    @property
    def topics(self) -> dict[str, int]:
        """Topics with their numbers of partitions, as known to the load."""
        with self._lock:
            return dict(self._topics)

    def take_turn(self) -> bool:
        """Return whether there is something to produce now, and count it."""
        if self._is_paused or not self._topics or self._left <= 0:
            return False
        self._left -= self._per_tick
        return True

    def _run(self) -> None:
        while not self._stop.wait(_TICK):
            with self._lock:
                if not self.take_turn():
                    continue
                if self._dice.random() < 0.15:
                    self._transaction()
                else:
                    self._burst(self._plain)

    def _burst(self, producer: Any) -> None:
        for _ in range(self._per_tick):
            self._send(producer)
        producer.poll(0)

    def _send(self, producer: Any) -> None:
        topic = self._dice.choice(sorted(self._topics))
        partition = self._dice.randrange(self._topics[topic])
        with contextlib.suppress(BufferError, KafkaException):
            producer.produce(
                topic, f"{self.cluster}/{topic}/{uuid.uuid4().hex}", partition=partition
            )

    def _transaction(self) -> None:
        """Write a transaction.

        Whatever fails is aborted by the coordinator when the producer is recreated.
        """
        try:
            if self._transactional is None:
                made = Producer(
                    {**self._settings(), "transactional.id": f"load-{uuid.uuid4().hex}"} | _SHORT
                )
                made.init_transactions(10)
                self._transactional = made
            self._transactional.begin_transaction()
            self._burst(self._transactional)
            if self._dice.random() < _ABORTED:
                self._transactional.abort_transaction(10)
            else:
                self._transactional.commit_transaction(10)
        except KafkaException:
            self._transactional = None

    def _settings(self) -> dict[str, Any]:
        return {
            "bootstrap.servers": self._bootstrap,
            "enable.idempotence": True,
            "linger.ms": 5,
            "message.timeout.ms": 20_000,
            "topic.metadata.refresh.interval.ms": 2000,
            "log_level": 0,
        }


_SHORT: Final = {"transaction.timeout.ms": 12_000, "message.timeout.ms": 12_000}
"""An abandoned transaction holds up readers no longer than this."""
