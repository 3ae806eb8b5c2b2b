"""Look-ups of offsets while leaders move, hang or are away.

Over a stand-in for brokers and the client library.
"""

import gc
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import (
    OFFSET_INVALID,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicPartition,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from balanced_source.api import SplitId
from balanced_source_adapters.kafka.offsets import (
    FORGET,
    MANY,
    OVERDUE,
    RENEW_TIMEOUT,
    ListedOffsets,
    OffsetRequests,
    has_answered,
)
from balanced_source_adapters.kafka.offsets_admin import LATEST

A: SplitId = ("c", "t", 0)
B: SplitId = ("c", "t", 1)
ENDS = {A: 10, B: 11}


class Brokers:
    """Partition n ends at 10 + n.

    The client library knows leaders and epochs as of the last look at the metadata.
    """

    def __init__(self) -> None:
        self.leaders = {0: 1, 1: 2}
        self.epochs = {0: 0, 1: 0}
        self.known_epochs = dict(self.epochs)
        self.hung: dict[int, list[Callable[[], None]]] = {}
        self.dead: set[int] = set()
        self.metadata: list[str | None] = []
        self.requests: list[set[int]] = []
        self.futures: list[weakref.ref[Future[Any]]] = []

    def list_topics(self, topic: str | None, **_: Any) -> Any:
        self.metadata.append(topic)
        self.known_epochs = dict(self.epochs)
        partitions = {
            number: SimpleNamespace(leader=leader) for number, leader in self.leaders.items()
        }
        names = [topic] if topic is not None else [f"t{number}" for number in range(100)]
        return SimpleNamespace(
            topics={name: SimpleNamespace(error=None, partitions=partitions) for name in names}
        )

    def list_together(
        self, wanted: list[TopicPartition], **_: Any
    ) -> Future[Mapping[TopicPartition, Any]]:
        self.requests.append({partition.partition for partition in wanted})
        future: Future[Mapping[TopicPartition, Any]] = Future()
        self.futures.append(weakref.ref(future))
        hung = {self.leaders[partition.partition] for partition in wanted} & self.hung.keys()
        if hung:
            self.hung[min(hung)].append(lambda: self._answer(future, wanted))
        else:
            self._answer(future, wanted)
        return future

    def wake(self, leader: int) -> None:
        for answer in self.hung.pop(leader):
            answer()

    def _answer(self, future: Future[Any], wanted: list[TopicPartition]) -> None:
        future.set_result({partition: self._told(partition.partition) for partition in wanted})

    def _told(self, number: int) -> Any:
        if self.leaders[number] in self.dead:
            return SimpleNamespace(offset=OFFSET_INVALID)
        if self.known_epochs[number] < self.epochs[number]:
            return KafkaError(KafkaError.FENCED_LEADER_EPOCH)
        return SimpleNamespace(offset=10 + number, timestamp=-1)


class Scene:
    """Requests over brokers, and a clock."""

    def __init__(self, *, timeout: float = 30.0) -> None:
        self.brokers = Brokers()
        self.now = 0.0
        isolation = IsolationLevel.READ_COMMITTED
        self.requests = OffsetRequests(
            self.brokers, isolation, timeout=timeout, patience=0.01, clock=lambda: self.now
        )

    def ask(self, *splits: SplitId) -> ListedOffsets:
        return self.requests.ask(dict.fromkeys(splits, LATEST))

    def ends(self, *splits: SplitId) -> dict[SplitId, int]:
        return {s: answer.offset for s, answer in self.ask(*splits).answers.items()}


def test_a_request_per_leader_and_one_look_at_the_metadata() -> None:
    scene = Scene()

    assert (scene.ends(A, B), scene.ends(A, B)) == (ENDS, ENDS)
    assert (scene.brokers.metadata, scene.brokers.requests) == (["t"], [{0}, {1}] * 2)


def test_a_look_up_leaves_nothing_for_the_cyclic_collector() -> None:
    """A driver looks up ends many times a second: such garbage makes its memory grow and shrink."""
    scene = Scene()
    scene.ends(A, B)
    scene.brokers.futures.clear()
    scene.brokers.hung = {1: [], 2: []}

    def answer() -> None:
        while not all(scene.brokers.hung.values()):
            time.sleep(0.001)
        scene.brokers.wake(1)
        scene.brokers.wake(2)

    brokers = threading.Thread(target=answer)
    gc.disable()
    try:
        brokers.start()
        assert scene.ends(A, B) == ENDS
        brokers.join()
        assert [future() for future in scene.brokers.futures] == [None, None]
    finally:
        gc.enable()


def test_a_broker_with_the_id_0_is_asked() -> None:
    scene = Scene()
    scene.brokers.leaders = {0: 0, 1: 1}

    assert scene.ends(A, B) == ENDS


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


def test_the_metadata_of_a_silent_partition_is_queried_less_and_less_often() -> None:
    """However often ends are asked for: an idle query asks fifty times a second.

    At last, once a second.
    """
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


def test_a_slow_leader_that_has_answered_does_not_prolong_the_wait_for_another() -> None:
    scene = Scene()
    scene.brokers.hung = {1: [], 2: []}

    def answer_after_ten_seconds() -> None:
        scene.now += 10
        scene.brokers.wake(1)

    threading.Timer(0.05, answer_after_ten_seconds).start()
    started = time.monotonic()

    assert scene.ends(A, B) == {A: 10}
    assert time.monotonic() - started < 10, "twice the time of the slow leader would be 20 s"


def test_a_leader_that_is_down_is_retried_without_waiting() -> None:
    """The client library gives up after its timeout.

    The next request must not hold others back as long.
    """
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

    assert (listed.answers, {e.code() for e in listed.errors.values()}) == (
        {},
        {KafkaError._TRANSPORT},
    )
    assert set(listed.errors) == {A, B}


def test_a_broker_that_hangs_during_a_metadata_request_is_reported_as_such() -> None:
    """The metadata was asked of the same broker.

    The other leader's answer does not wait for it for long.
    """
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


SPLITS: tuple[SplitId, ...] = tuple(("c", "t", number) for number in range(4))
partitions = st.integers(0, 3)
leaders = st.integers(1, 3)
happenings = st.one_of(
    st.tuples(st.just("ask"), st.just(0), st.just(0)),
    st.tuples(st.just("wait"), st.just(0), st.just(0)),
    st.tuples(st.just("fence"), partitions, st.just(0)),
    st.tuples(st.just("move"), partitions, leaders),
    st.tuples(st.just("lose"), partitions, st.just(0)),
    st.tuples(st.just("hang"), leaders, st.just(0)),
    st.tuples(st.just("die"), leaders, st.just(0)),
    st.tuples(st.just("heal"), leaders, st.just(0)),
)


class Life:
    """Brokers to which things happen, and what must hold whenever ends are asked for."""

    def __init__(self) -> None:
        self.scene = Scene(timeout=0.05)
        self.brokers = self.scene.brokers
        self.brokers.leaders = {number: number % 3 + 1 for number in range(4)}
        self.brokers.epochs = dict.fromkeys(range(4), 0)
        self.brokers.known_epochs = dict(self.brokers.epochs)

    def happen(self, what: str, which: int, to: int) -> None:
        match what:
            case "ask":
                self.ask()
            case "wait":
                self.scene.now += 1.0
            case "fence":
                self.brokers.epochs[which] += 1
            case "move" | "lose":
                self.brokers.leaders[which] = to if what == "move" else -1
                self.brokers.epochs[which] += 1
            case "hang":
                self.brokers.hung.setdefault(which, [])
            case "die":
                self.brokers.dead.add(which)
            case "heal":
                self.heal(which)

    def heal(self, leader: int) -> None:
        self.brokers.dead.discard(leader)
        if leader in self.brokers.hung:
            self.brokers.wake(leader)

    def ask(self) -> ListedOffsets:
        listed = self.scene.ask(*SPLITS)
        assert not listed.answers.keys() & listed.errors.keys()
        assert listed.answers.keys() | listed.errors.keys() == set(SPLITS), (
            "a partition that exists was left out"
        )
        assert all(answer.offset == 10 + int(s[2]) for s, answer in listed.answers.items())
        return listed

    def recover(self) -> ListedOffsets:
        for leader in (1, 2, 3):
            self.heal(leader)
        self.brokers.leaders = {
            number: max(1, leader) for number, leader in self.brokers.leaders.items()
        }
        self.scene.now += 1.0
        self.ask()
        self.scene.now += 1.0
        return self.ask()


@settings(max_examples=80)
@given(steps=st.lists(happenings, max_size=12))
def test_each_partition_has_its_own_answer_and_recovers_under_any_leader_change(
    steps: list[tuple[str, int, int]],
) -> None:
    """No step silences a partition for longer than it lasts, or another one at all."""
    life = Life()
    for what, which, to in steps:
        life.happen(what, which, to)

    assert life.recover().errors == {}


@settings(max_examples=50)
@given(bad=leaders, kind=st.sampled_from(["hang", "die"]), lost=st.lists(partitions, max_size=2))
def test_partitions_of_healthy_leaders_are_always_answered(
    bad: int, kind: str, lost: list[int]
) -> None:
    life = Life()
    life.ask()
    life.happen(kind, bad, 0)
    for partition in lost:
        life.happen("lose", partition, 0)
    life.scene.now += 1.0

    answered = life.ask().answers.keys()

    healthy = {
        ("c", "t", n) for n, leader in life.brokers.leaders.items() if leader not in (bad, -1)
    }
    assert healthy <= answered


def future_of(result: Any) -> Future[Any]:
    made: Future[Any] = Future()
    if isinstance(result, Exception):
        made.set_exception(result)
    elif result is not None:
        made.set_result({TopicPartition("t", n): answer for n, answer in enumerate(result)})
    return made


AN_OFFSET = SimpleNamespace(offset=5)
NO_OFFSET = SimpleNamespace(offset=OFFSET_INVALID)
REFUSED = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)
SILENCE = KafkaError(KafkaError._TRANSPORT)


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (None, False),
        (KafkaException(SILENCE), False),
        (KafkaException(REFUSED), True),
        ([], False),
        ([AN_OFFSET], True),
        ([REFUSED], True),
        ([NO_OFFSET, SILENCE, None], False),
        ([SILENCE, NO_OFFSET, AN_OFFSET], True),
        ([SILENCE, REFUSED], True),
    ],
)
def test_a_broker_has_answered_if_it_said_anything_about_one_partition(
    result: Any, *, expected: bool
) -> None:
    assert has_answered(future_of(result)) is expected


def test_answers_are_in_the_order_of_the_question() -> None:
    """Whichever leaders they come from: messages and documents are made of them."""
    brokers = Brokers()
    brokers.leaders, brokers.epochs = dict.fromkeys(range(4), 1), dict.fromkeys(range(4), 0)
    brokers.leaders |= {1: 2, 3: 2}
    requests: Any = OffsetRequests(brokers, IsolationLevel.READ_COMMITTED, timeout=5)  # type: ignore[arg-type]
    wanted = {("c", "t", number): LATEST for number in (3, 0, 1, 2)}

    found = requests.ask(wanted)

    assert list(found.answers) == list(wanted)


@pytest.mark.parametrize("count", [MANY, MANY + 1])
def test_with_many_topics_one_question_is_for_the_whole_cluster(count: int) -> None:
    brokers = Brokers()
    requests: Any = OffsetRequests(brokers, IsolationLevel.READ_COMMITTED, timeout=5)  # type: ignore[arg-type]
    names = [f"t{number}" for number in range(count)]

    found = requests.ask({("c", name, 0): LATEST for name in names})

    assert len(found.answers) == count
    assert sorted(map(str, brokers.metadata)) == sorted(names if count == MANY else ["None"])


def test_a_topic_that_cannot_be_described_is_an_error_of_its_own() -> None:
    class Secretive(Brokers):
        def list_topics(self, topic: str | None, **more: Any) -> Any:
            found = super().list_topics(topic, **more)
            codes = {
                "hidden": KafkaError.TOPIC_AUTHORIZATION_FAILED,
                "absent": KafkaError.UNKNOWN_TOPIC_OR_PART,
            }
            for name, answer in found.topics.items():
                answer.error = KafkaError(codes[name]) if name in codes else None
            return found

    requests: Any = OffsetRequests(Secretive(), IsolationLevel.READ_COMMITTED, timeout=5)  # type: ignore[arg-type]
    hidden, absent = ("c", "hidden", 0), ("c", "absent", 0)

    found = requests.ask({A: LATEST, hidden: LATEST, absent: LATEST})

    assert found.answers.keys() == {A}
    assert {s: error.code() for s, error in found.errors.items()} == {
        hidden: KafkaError.TOPIC_AUTHORIZATION_FAILED
    }


def test_leaders_of_topics_that_no_one_asks_for_are_forgotten() -> None:
    """Topics may be named by day. Another user of the client asks for its own now and then."""
    scene = Scene()
    for number in range(50):
        scene.ask(("c", f"day-{number}", 0))
        scene.now += FORGET / 2
        scene.ask(A)
        scene.now += FORGET / 2
    kept = {"t", "day-48", "day-49"}
    assert scene.requests._leaders.keys() == scene.requests._used.keys() == kept
    scene.brokers.metadata.clear()
    assert scene.ends(A) == {A: 10}
    assert scene.brokers.metadata == []


def test_a_partition_that_is_not_asked_for_any_more_slows_no_look_up_down() -> None:
    scene = Scene()
    absent: list[SplitId] = [("c", f"day-{number}", 7) for number in range(50)]
    for split_id in absent:
        assert scene.ends(A, split_id) == {A: 10}
    assert scene.requests._due_at.keys() == set(absent)
    scene.now += OVERDUE + 2.0
    scene.ends(A)

    assert scene.requests._due_at == {}
