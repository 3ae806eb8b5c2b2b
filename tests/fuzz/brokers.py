"""Answers of Kafka brokers, as the client library hands them on.

Missing, twice, negative, of another kind.
"""

import json
from collections.abc import Mapping
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any, Final
from unittest import mock

from confluent_kafka import KafkaError, KafkaException, TopicPartition
from hypothesis import strategies as st

from balanced_source.connectors.discovery import Discovered
from balanced_source.connectors.kafka import (
    EARLIEST,
    LATEST,
    DiscoverKafka,
    FromCommit,
    FromTime,
    InitializeKafka,
    KafkaCluster,
    TopicList,
    TopicPattern,
)
from balanced_source_adapters.kafka import client as kafka_client
from balanced_source_adapters.kafka import topics as kafka_topics
from balanced_source_adapters.kafka.admin import KafkaAdmin
from balanced_source_adapters.kafka.client_statistics import parse
from fuzz.judge import Judge
from fuzz.values import broken
from support.offsets_admin import together

CODES: Final = sorted(
    code
    for name in dir(KafkaError)
    if name.strip("_").isupper()
    and isinstance(code := getattr(KafkaError, name), int)
    and code != 0
)
STATISTICS: Final = (
    {"brokers": {"a:1/1": {"state": "UP", "rtt": {"avg": 10}, "throttle": {"avg": 1}, "tx": 5}}},
)
TOPICS: Final = ("t", "orders", "__consumer_offsets", "a b", "", "x" * 300, "é", "..")

errors = st.sampled_from(CODES)
offsets = st.sampled_from((0, 1, 5, -1, -2, -1001, 2**31, 2**63 - 1)) | st.integers(
    -(2**63), 2**63 - 1
)
answers = offsets | errors.map(KafkaError)
worlds: Final = st.fixed_dictionaries(
    {
        "topics": st.dictionaries(
            st.sampled_from(TOPICS),
            st.lists(st.integers(-1, 3) | st.just(2**31 - 1), max_size=4),
            max_size=3,
        ),
        "listing": st.none() | errors,
        "describing": st.none() | errors,
        "offsets": st.lists(answers, min_size=1, max_size=4),
        "commits": st.lists(answers, min_size=1, max_size=4),
        "initializer": st.sampled_from(
            (EARLIEST, LATEST, FromCommit("g"), FromTime(5), FromTime(5, reset=None))
        ),
        "subscriber": st.sampled_from(
            (TopicList(("t", "orders")), TopicPattern(".*"), TopicPattern("o.*", "x"))
        ),
    }
)
cases: Final = worlds | broken(STATISTICS).map(json.dumps) | st.text(max_size=20)


def done(result: Any) -> Future[Any]:
    """Returns a future that has its result."""
    future: Future[Any] = Future()
    if isinstance(result, KafkaError):
        future.set_exception(KafkaException(result))
    else:
        future.set_result(result)
    return future


class Library:
    """Stands in for `OffsetsAdmin`: says what a world says."""

    world: Mapping[str, Any]

    def __init__(self, _config: Mapping[str, Any]) -> None:
        self._number = 0

    def poll(self, _timeout: float) -> int:
        return 0

    def list_topics(self, _topic: str | None = None, **_: Any) -> Any:
        if self.world["listing"] is not None:
            raise KafkaException(KafkaError(self.world["listing"]))
        return SimpleNamespace(
            topics={name: _listed(numbers) for name, numbers in self.world["topics"].items()}
        )

    def describe_topics(self, names: Any, **_: Any) -> Mapping[str, Future[Any]]:
        code = self.world["describing"]
        found: dict[str, Future[Any]] = {}
        for name in names:
            partitions = [
                SimpleNamespace(id=number) for number in self.world["topics"].get(name, ())
            ]
            missing = KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)
            told = (
                SimpleNamespace(partitions=partitions, topic_id="id")
                if name in self.world["topics"]
                else missing
            )
            found[name] = done(KafkaError(code) if code is not None else told)
        return found

    def list_together(
        self, wanted: list[TopicPartition], **_: Any
    ) -> Future[Mapping[TopicPartition, Any]]:
        def answer(told: Any) -> Any:
            return (
                told
                if isinstance(told, KafkaError)
                else SimpleNamespace(offset=told, timestamp=0, leader_epoch=0)
            )

        return together({tp: answer(self._next("offsets")) for tp in wanted})

    def list_consumer_group_offsets(self, requests: Any, **_: Any) -> Mapping[str, Future[Any]]:
        (request,) = requests
        listed = []
        for partition in request.topic_partitions:
            told = self._next("commits")
            error, offset = (told, -1001) if isinstance(told, KafkaError) else (None, told)
            entry = TopicPartition(
                partition.topic, partition.partition, max(-1001, min(offset, 2**63 - 1))
            )
            listed.append(_committed(entry, error))
        return {request.group_id: done(SimpleNamespace(topic_partitions=listed))}

    def _next(self, what: str) -> Any:
        listed = self.world[what]
        self._number += 1
        return listed[self._number % len(listed)]


def _listed(numbers: list[int]) -> Any:
    """A topic in the metadata of a cluster."""
    partitions = {n: SimpleNamespace(id=n, leader=1 if n % 2 else -1, error=None) for n in numbers}
    return SimpleNamespace(error=None, partitions=partitions)


def _committed(entry: TopicPartition, error: KafkaError | None) -> Any:
    """A `TopicPartition` with an error, which only the library itself can set."""
    return _Committed(entry.topic, entry.partition, entry.offset, error)


class _Committed(TopicPartition):  # type: ignore[misc] # the library has no types
    def __init__(self, topic: str, partition: int, offset: int, error: KafkaError | None) -> None:
        super().__init__(topic, partition, offset)
        self._error = error

    @property
    def error(self) -> KafkaError | None:
        return self._error


def check(case: Any, judge: Judge) -> None:
    """Discovers, then looks up offsets, at a cluster that answers like that."""
    if isinstance(case, str):
        judge.try_(lambda: parse(case), case)
        return
    cluster = KafkaCluster(name="c", bootstrap_servers="b:1")
    shown = {key: repr(value) for key, value in case.items()}
    library = type("OffsetsAdmin", (Library,), {"world": case})
    names = mock.patch.object(kafka_topics, "TopicCollection", list)
    with mock.patch.object(kafka_client, "OffsetsAdmin", library), names:
        admin = KafkaAdmin()
        found = judge.try_(lambda: admin.discover(_discovery(cluster, case)), shown)
        if isinstance(found, Discovered):
            call = InitializeKafka(
                scope="c",
                cluster=cluster,
                split_ids=tuple(sorted(found.split_ids)),
                starting_offsets=case["initializer"],
                stopping_offsets=None,
            )
            judge.try_(lambda: admin.initialize(call), shown)
            judge.try_(lambda: admin.ends(cluster, found.split_ids), shown)
            judge.try_(lambda: admin.begins(cluster, found.split_ids), shown)


def _discovery(cluster: KafkaCluster, case: Mapping[str, Any]) -> DiscoverKafka:
    return DiscoverKafka(scope="c", round=1, cluster=cluster, subscriber=case["subscriber"])
