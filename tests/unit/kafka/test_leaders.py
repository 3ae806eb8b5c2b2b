"""Look-ups of offsets while leaders move, hang or are away: over a stand-in for brokers and the client library."""

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

from confluent_kafka import OFFSET_INVALID, IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import OffsetSpec

from balanced_source.api import SplitId
from balanced_source_adapters.kafka_offsets import MANY, RENEW_TIMEOUT, Listed, OffsetRequests

A: SplitId = ("c", "t", 0)
B: SplitId = ("c", "t", 1)
ENDS = {A: 10, B: 11}


class Brokers:
    """Partition n ends at 10 + n; the client library knows leaders and epochs as of the last look at the metadata."""

    def __init__(self) -> None:
        self.leaders = {0: 1, 1: 2}
        self.epochs = {0: 0, 1: 0}
        self.known_epochs = dict(self.epochs)
        self.hung: dict[int, list[Callable[[], None]]] = {}
        self.dead: set[int] = set()
        self.metadata: list[str | None] = []
        self.requests: list[set[int]] = []

    def list_topics(self, topic: str | None, **_: Any) -> Any:
        self.metadata.append(topic)
        self.known_epochs = dict(self.epochs)
        partitions = {number: SimpleNamespace(leader=leader) for number, leader in self.leaders.items()}
        names = [topic] if topic is not None else [f"t{number}" for number in range(100)]
        return SimpleNamespace(topics={name: SimpleNamespace(error=None, partitions=partitions) for name in names})

    def list_offsets(self, wanted: Mapping[TopicPartition, Any], **_: Any) -> Mapping[TopicPartition, Future[Any]]:
        self.requests.append({partition.partition for partition in wanted})
        futures: dict[TopicPartition, Future[Any]] = {partition: Future() for partition in wanted}
        for partition, future in futures.items():
            leader = self.leaders[partition.partition]
            if leader in self.hung:
                self.hung[leader].append(lambda f=future, n=partition.partition: self._answer(f, n))  # type: ignore[misc]
            elif leader in self.dead:
                future.set_result(SimpleNamespace(offset=OFFSET_INVALID))
            else:
                self._answer(future, partition.partition)
        return futures

    def wake(self, leader: int) -> None:
        for answer in self.hung.pop(leader):
            answer()

    def _answer(self, future: Future[Any], number: int) -> None:
        if self.known_epochs[number] < self.epochs[number]:
            future.set_exception(KafkaException(KafkaError(KafkaError.FENCED_LEADER_EPOCH)))
        else:
            future.set_result(SimpleNamespace(offset=10 + number, timestamp=-1))


class Scene:
    """Requests over brokers, and a clock."""

    def __init__(self) -> None:
        self.brokers = Brokers()
        self.now = 0.0
        isolation = IsolationLevel.READ_COMMITTED
        self.requests = OffsetRequests(self.brokers, isolation, timeout=30.0, patience=0.01, clock=lambda: self.now)

    def ask(self, *splits: SplitId) -> Listed:
        return self.requests.ask(dict.fromkeys(splits, OffsetSpec.latest()))

    def ends(self, *splits: SplitId) -> dict[SplitId, int]:
        return {s: answer.offset for s, answer in self.ask(*splits).answers.items()}


def test_a_request_per_leader_and_one_look_at_the_metadata() -> None:
    scene = Scene()

    assert (scene.ends(A, B), scene.ends(A, B)) == (ENDS, ENDS)
    assert (scene.brokers.metadata, scene.brokers.requests) == (["t"], [{0}, {1}] * 2)


def test_a_newer_leader_epoch_costs_one_look_at_the_metadata() -> None:
    """Librdkafka would repeat the epoch that it knows for 15 minutes."""
    scene = Scene()
    scene.ends(A, B)
    scene.brokers.epochs = {0: 1, 1: 0}
    scene.now = 100.0

    assert scene.ends(A, B) == ENDS
    assert scene.brokers.metadata == ["t", "t"]


def test_a_partition_without_a_leader_is_not_asked_and_stops_no_other() -> None:
    scene = Scene()
    scene.brokers.leaders[1] = -1

    listed = scene.ask(A, B)

    assert (set(listed.answers), listed.errors[B].code()) == ({A}, KafkaError.LEADER_NOT_AVAILABLE)
    assert scene.brokers.requests == [{0}]


def test_the_metadata_of_a_silent_partition_is_looked_at_ever_less_often() -> None:
    """However often ends are asked for: an idle query asks fifty times a second. At last, once a second."""
    scene = Scene()
    scene.brokers.leaders[1] = -1
    for _ in range(500):
        scene.now += 0.02
        scene.ask(A, B)
    assert 10 <= len(scene.brokers.metadata) <= 15

    scene.brokers.leaders[1] = 1
    scene.now += 1.0
    assert scene.ends(A, B) == ENDS


def test_a_leader_that_hangs_stops_no_other_and_gets_no_second_request() -> None:
    scene = Scene()
    scene.brokers.hung[2] = []

    for _ in range(3):
        listed = scene.ask(A, B)
        assert (set(listed.answers), listed.errors[B].code()) == ({A}, KafkaError.REQUEST_TIMED_OUT)
    assert len(scene.brokers.hung[2]) == 1

    scene.brokers.wake(2)
    assert scene.ends(A, B) == ENDS


def test_a_leader_that_is_down_is_asked_again_without_being_waited_for() -> None:
    """The client library gives up after its timeout; the next request must not hold others back as long."""
    scene = Scene()
    scene.ends(A, B)
    scene.brokers.dead.add(2)
    assert scene.ends(A, B) == {A: 10}

    scene.brokers.hung[2] = []
    scene.brokers.dead.clear()
    assert scene.ends(A, B) == {A: 10}
    scene.brokers.wake(2)
    assert scene.ends(A, B) == ENDS


def test_a_partition_that_the_cluster_does_not_know_has_neither_answer_nor_error() -> None:
    scene = Scene()
    absent: SplitId = ("c", "t", 7)

    assert scene.ask(A, absent) == scene.ask(A)


def test_a_cluster_that_gives_no_metadata_is_an_error_of_all_its_partitions() -> None:
    scene = Scene()

    def fail(*_: Any, **__: Any) -> Any:
        raise KafkaException(KafkaError(KafkaError._TRANSPORT))

    scene.brokers.list_topics = fail  # type: ignore[method-assign]
    listed = scene.ask(A, B)

    assert (listed.answers, {e.code() for e in listed.errors.values()}) == ({}, {KafkaError._TRANSPORT})
    assert set(listed.errors) == {A, B}


def test_a_broker_that_hangs_while_metadata_is_asked_for_is_named_as_what_it_is() -> None:
    """The metadata was asked of the same broker; the other leader's answer does not wait for it for long."""
    scene = Scene()
    scene.ends(A, B)
    scene.brokers.hung[2] = []
    timeouts: list[float] = []

    def hang(*_: Any, timeout: float) -> Any:
        timeouts.append(timeout)
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT))

    scene.brokers.list_topics = hang  # type: ignore[method-assign, assignment]
    listed = scene.ask(A, B)

    assert (set(listed.answers), listed.errors[B].code()) == ({A}, KafkaError.REQUEST_TIMED_OUT)
    assert "broker 2" in listed.errors[B].str()
    assert timeouts == [RENEW_TIMEOUT]


def test_many_topics_cost_one_look_at_the_metadata() -> None:
    scene = Scene()
    splits: list[SplitId] = [("c", f"t{number}", 0) for number in range(MANY + 1)]

    assert scene.ends(*splits) == dict.fromkeys(splits, 10)
    assert scene.brokers.metadata == [None]
