"""How large records are: a sample of each topic, taken now and then where reading stands.

For limits in bytes.
"""

import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, Final

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from balanced_source.api import SplitId
from balanced_source.connectors.kafka import KafkaSplitId
from balanced_source.errors import BalancedSourceError
from balanced_source_adapters.lazy_log import get_logger
from balanced_source_spark.kafka.settings import NO_TEXT

FRESH: Final = 60.0
"""Seconds for which a sample of a topic is good."""

PATIENCE: Final = 2.0
"""Seconds to wait for the first sample of a topic; later ones are taken in the background."""

SAMPLE: Final = 200
"""Records."""

log = get_logger(__name__)

Sample = Callable[[SplitId, int], float | None]
"""Mean bytes of records of a split from an offset on; None if there is none. Blocking."""

_Topic = tuple[str, str]


class RecordSizes:
    """Last known mean size per topic. Used by one thread."""

    def __init__(self, sample: Sample) -> None:
        self._sample = sample
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="bsrc-sizes")
        self._known: dict[_Topic, float] = {}
        self._asked: dict[_Topic, float] = {}
        self._pending: dict[_Topic, Future[float | None]] = {}

    def __call__(
        self, positions: Mapping[SplitId, int], held: Collection[SplitId]
    ) -> Mapping[SplitId, float]:
        """Return the mean bytes of a record per split, for topics of which any is known.

        Args:
            positions: of splits with something to read.
            held: all splits; other topics are forgotten.
        """
        now, count = time.monotonic(), len(self._asked)
        for split_id, position in positions.items():
            topic = _topic_of(split_id)
            if topic not in self._pending and now - self._asked.get(topic, -FRESH) >= FRESH:
                self._asked[topic] = now
                self._pending[topic] = self._pool.submit(self._sample, split_id, position)
        # Topics that are named by day come and go. There is nothing to forget without new ones.
        if len(self._asked) > count:
            self._forget_others({_topic_of(split_id) for split_id in held})
        wait(
            [future for topic, future in self._pending.items() if topic not in self._known],
            PATIENCE,
        )
        self._collect()
        return {s: self._known[topic] for s in positions if (topic := _topic_of(s)) in self._known}

    def _forget_others(self, topics: Collection[_Topic]) -> None:
        self._asked = {topic: at for topic, at in self._asked.items() if topic in topics}
        self._known = {topic: size for topic, size in self._known.items() if topic in topics}

    def _collect(self) -> None:
        for topic in [topic for topic, future in self._pending.items() if future.done()]:
            try:
                size = self._pending.pop(topic).result()
            except (KafkaException, BalancedSourceError, LookupError):
                # also a Secret that is not there now
                log.warning(
                    "cannot tell how large records are now", cluster=topic[0], topic=topic[1]
                )
                continue
            if size is not None:
                self._known[topic] = size


def sampled(config: Mapping[str, Any], split_id: SplitId, offset: int) -> float | None:
    """See `Sample`.

    Raises:
        KafkaException: the cluster does not answer.
    """
    consumer = Consumer({**config, "queued.min.messages": SAMPLE})
    try:
        consumer.assign([TopicPartition(*KafkaSplitId.of(split_id)[1:], offset)])
        messages = [m for m in consumer.consume(SAMPLE, PATIENCE / 2) if m.error() is None]
    finally:
        consumer.close()
    return sum(map(size_of, messages)) / len(messages) if messages else None


def size_of(message: Message) -> int:
    """Bytes of key, value and headers."""
    try:
        headers: Any = message.headers() or ()
    except NO_TEXT:
        headers = ()  # an estimate does without them
    return (
        len(message.key() or b"")
        + len(message.value() or b"")
        + sum(len(k) + len(v or b"") for k, v in headers)
    )


def _topic_of(split_id: SplitId) -> _Topic:
    cluster, topic, _ = KafkaSplitId.of(split_id)
    return cluster, topic
