"""What a broker's log holds.

Cluster, topic, topic id, partition, offset and a digest of each committed record.
"""

import contextlib
import csv
import hashlib
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient

_TIMEOUT: Final = 30.0
_TICK: Final = 0.1
_ATTEMPTS: Final = 3
# A public constant with a private name
_END: Final = getattr(KafkaError, "_PARTITION_EOF")  # noqa: B009


class Record(NamedTuple):
    """One record of a log."""

    cluster: str
    topic: str
    topic_id: str
    partition: int
    offset: int
    digest: str


def digest(value: bytes) -> str:
    """Return the digest of a payload."""
    return hashlib.sha256(value).hexdigest()[:20]


def dump(file: Path, cluster: str, bootstrap: str, topics: Iterable[str]) -> int:
    """Append the committed records of topics to a file; returns how many.

    Raises:
        KafkaException: the cluster does not answer.
    """
    ids = topic_ids(bootstrap, topics)
    file.parent.mkdir(parents=True, exist_ok=True)
    count = 0
    with file.open("a", newline="") as out:
        writer = csv.writer(out)
        # The last one counts
        for count, record in enumerate(_records(cluster, bootstrap, ids), start=1):  # noqa: B007
            writer.writerow(record)
    return count


def load(file: Path) -> Iterator[Record]:
    """Read a dump."""
    with file.open(newline="") as text:
        for cluster, topic, topic_id, partition, offset, hashed in csv.reader(text):
            yield Record(cluster, topic, topic_id, int(partition), int(offset), hashed)


def topic_ids(bootstrap: str, topics: Iterable[str]) -> dict[str, str]:
    """Return the ids of the topics that exist.

    Raises:
        KafkaException: the cluster does not answer.
    """
    names = sorted(topics)
    for _ in range(_ATTEMPTS):
        # A client that asked a broker which has just died waits for that one: a new one asks again.
        with contextlib.suppress(TimeoutError):
            return _asked_ids(bootstrap, names) if names else {}
    raise KafkaException(KafkaError(KafkaError._TIMED_OUT))


def _asked_ids(bootstrap: str, names: list[str]) -> dict[str, str]:
    admin: Any = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    found: dict[str, str] = {}
    for name, future in admin.describe_topics(
        TopicCollection(names), request_timeout=_TIMEOUT
    ).items():
        try:
            found[name] = str(future.result(timeout=_TIMEOUT).topic_id)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise
    return found


def _metadata(consumer: Any, names: Iterable[str]) -> Any:
    """Return what brokers know of topics.

    One that has just started may not know all of them yet.
    """
    deadline = time.monotonic() + _TIMEOUT
    while True:
        known = consumer.list_topics(timeout=_TIMEOUT).topics
        if known.keys() >= set(names):
            return known
        if time.monotonic() > deadline:
            raise KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART))
        time.sleep(_TICK)


def _records(cluster: str, bootstrap: str, ids: dict[str, str]) -> Iterator[Record]:
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": "chaos-checker",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "isolation.level": "read_committed",
        "auto.offset.reset": "earliest",
        "log_level": 0,
    }
    consumer: Any = Consumer(settings)
    try:
        known = _metadata(consumer, ids)
        open_ends = {(name, number) for name in ids for number in known[name].partitions}
        consumer.assign([TopicPartition(name, number, 0) for name, number in sorted(open_ends)])
        deadline = time.monotonic() + _TIMEOUT
        while open_ends:
            # it waits for as many messages as it is asked for, so it is asked for short times
            messages = consumer.consume(1000, timeout=_TICK)
            deadline = time.monotonic() + _TIMEOUT if messages else deadline
            if time.monotonic() > deadline:
                raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
            for message in messages:
                if message.error() and message.error().code() != _END:
                    raise KafkaException(message.error())
                key = (message.topic(), message.partition())
                if message.error():
                    open_ends.discard(key)
                elif key in open_ends:
                    hashed = digest(message.value())
                    yield Record(cluster, key[0], ids[key[0]], key[1], message.offset(), hashed)
    finally:
        consumer.close()
