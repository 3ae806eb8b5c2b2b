"""Keyed records at a steady rate, and a ledger of what the brokers have acknowledged."""

import itertools
import json
import threading
import time
from collections import Counter
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Final, Self

from confluent_kafka import KafkaError, Message, Producer

TICK: Final = 0.05
"""Seconds between bursts; the rate is kept over each second, not within a tick."""


class Load:
    """Produces in a thread until it is stopped; a context manager.

    Args:
        bootstrap: brokers.
        rate: records per second, over all topics.
        topics: to produce to, in turn.
        partitioner: of librdkafka; the default spreads keys over all partitions that there are at
            the time.
    """

    def __init__(
        self,
        bootstrap: str,
        *,
        rate: int,
        topics: tuple[str, ...],
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 20,
                # a broker that is still loading, a topic that grew: all part of the story
                "log_level": 3,
                "topic.metadata.refresh.interval.ms": 2000,
                **(settings or {}),
            }
        )
        self._rate = rate
        self._topics = itertools.cycle(topics)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="load", daemon=True)
        self._failed: list[str] = []
        self._began = time.monotonic()
        self._ended: float | None = None
        self.acknowledged: Counter[tuple[str, int]] = Counter()

    def __enter__(self) -> Self:
        self._began = time.monotonic()
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """End producing and wait until the brokers have everything.

        Raises:
            RuntimeError: a record was refused.
        """
        self._stop.set()
        self._thread.join()
        self._ended = self._ended or time.monotonic()
        self._producer.flush(60)
        if self._failed:
            raise RuntimeError(f"{len(self._failed)} records were refused: {self._failed[0]}")

    @property
    def produced(self) -> int:
        """Records that brokers have acknowledged."""
        return sum(self.acknowledged.values())

    @property
    def rate(self) -> float:
        """Records per second so far."""
        return self.produced / max((self._ended or time.monotonic()) - self._began, 0.001)

    def _run(self) -> None:
        sent, numbers = 0, itertools.count()
        while not self._stop.wait(TICK):
            due = int((time.monotonic() - self._began) * self._rate)
            for number in itertools.islice(numbers, due - sent):
                self._send(number)
            sent = due
            self._producer.poll(0)

    def _send(self, number: int) -> None:
        value = json.dumps({"number": number, "at": time.time()})
        topic, key = next(self._topics), f"key-{number % 10_000}"
        is_queued = False
        while not is_queued:
            try:
                self._producer.produce(topic, key=key, value=value, on_delivery=self._on_delivery)
                is_queued = True
            except BufferError:
                self._producer.poll(0.1)

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._failed.append(str(error))
        else:
            self.acknowledged[message.topic() or "", message.partition() or 0] += 1
