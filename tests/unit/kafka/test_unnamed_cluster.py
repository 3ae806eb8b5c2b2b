"""A query without an operator names no cluster, so no sentence may give its cluster a name.

The name that stands for it is in split ids, checkpoints and rows. Messages name the brokers.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import ModuleType, SimpleNamespace
from typing import Any, Final

import pytest
from confluent_kafka import KafkaError, KafkaException

from balanced_source.api import STOP, Problem, ProblemKey, SplitId
from balanced_source.connectors.discovery import Discovered
from balanced_source.connectors.kafka import (
    KafkaCluster,
    KafkaPartitionSplit,
    KafkaReaderSettings,
    KafkaSource,
    OnDataLoss,
)
from balanced_source.connectors.kafka.offsets import AfterHistory
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.errors import DiscoveryError, RefusedDiscoveryError
from balanced_source.host import SplitRange
from balanced_source.host.ends import Look, Mark, SplitEnd
from balanced_source_adapters.kafka import client as kafka_client
from balanced_source_adapters.kafka import topics as kafka_topics
from balanced_source_adapters.kafka.admin import KafkaAdmin
from balanced_source_spark.contract.secrets import NO_SECRETS
from balanced_source_spark.kafka import native, range_reader, task_reader
from balanced_source_spark.kafka.data_loss import LossCounter, LossProblems
from balanced_source_spark.kafka.open_transactions import INTERVAL, PATIENCE, OpenTransactions
from balanced_source_spark.kafka.pool import Pool
from balanced_source_spark.kafka.settings import RangeReaderSettings
from balanced_source_spark.kafka.task_reader import KafkaTaskReader
from balanced_source_spark.options import parse_options
from balanced_source_spark.partition import ReaderPartition
from support.messages import message
from support.offsets_admin import together
from testbed.versions import CHECKOUT

SERVERS: Final = "one.example:9092,two.example:9092"
CALLED: Final = "the cluster at one.example:9092, two.example:9092"
ONE: Final = ("kafka", "t", 0)

_REFUSED: Final = KafkaError.TOPIC_AUTHORIZATION_FAILED


def embedded(**options: str) -> KafkaSource:
    """Return the source of a query with these options."""
    given = {"kafka.bootstrap.servers": SERVERS, "subscribe": "t,absent", **options}
    source = parse_options({k: v for k, v in given.items() if v}).embedded
    assert isinstance(source, KafkaSource)
    return source


def reading(*, policy: OnDataLoss = OnDataLoss.FAIL) -> KafkaReaderSettings:
    """Return what the tasks of such a query read in its assignment."""
    source = replace(embedded(), on_data_loss=policy)
    return KafkaReaderSettings.of(source.reader_settings())


@dataclass(frozen=True, kw_only=True)
class Library:
    """What `OffsetsAdmin` answers: topic t with one partition.

    Attributes:
        failure: code of the error with which each call fails; None: none does.
        topics: code of the error for each topic.
        offsets: code of the error for each partition.
        partition: number of the partition.
    """

    failure: int | None = None
    topics: int | None = None
    offsets: int | None = None
    partition: int = 0

    def describe_topics(self, names: Any, **_: Any) -> Mapping[str, Future[Any]]:
        return {name: self._topic(name) for name in names}

    def _topic(self, name: str) -> Future[Any]:
        future: Future[Any] = Future()
        code = self.failure if self.failure is not None else self.topics
        if name == "absent":
            code = KafkaError.UNKNOWN_TOPIC_OR_PART
        if code is not None:
            future.set_exception(KafkaException(KafkaError(code, "no")))
        else:
            partitions = [SimpleNamespace(id=self.partition)]
            future.set_result(
                SimpleNamespace(partitions=partitions, topic_id="id", authorized_operations=None)
            )
        return future

    def list_together(self, wanted: Any, **_: Any) -> Any:
        code = self.failure if self.failure is not None else self.offsets
        answer = SimpleNamespace(offset=7, timestamp=0, leader_epoch=1)
        error = None if code is None else KafkaException(KafkaError(code, "no"))
        return together(dict.fromkeys(wanted, error or answer))

    def list_topics(self, *_: Any, **__: Any) -> Any:
        if self.failure is not None:
            raise KafkaException(KafkaError(self.failure, "no"))
        partitions = {self.partition: SimpleNamespace(leader=1)}
        return SimpleNamespace(topics={"t": SimpleNamespace(error=None, partitions=partitions)})

    def poll(self, _timeout: float) -> None:
        """Nothing to deliver."""


def asked(
    monkeypatch: pytest.MonkeyPatch, source: KafkaSource, **answers: Any
) -> Iterator[BaseException | None]:
    """Yield what look-ups fail with, and the problems that they find."""
    monkeypatch.setattr(kafka_client, "OffsetsAdmin", lambda _: Library(**answers))
    monkeypatch.setattr(kafka_topics, "TopicCollection", list)
    admin, (cluster,) = KafkaAdmin(), source.clusters
    calls: list[Callable[[], Any]] = [
        lambda: admin.discover(source.discover("kafka", 0)),
        lambda: admin.initialize(source.initialize("kafka", [ONE], is_first=True)),
        lambda: admin.ends(cluster, [ONE]),
        lambda: admin.begins(cluster, [ONE]),
        lambda: admin.records_from(cluster, {ONE: 0}),
        lambda: dict(admin.ask_topic_ids(cluster, ["t"])()),
    ]
    for call in calls:
        try:
            found = call()
            yield found.problem if isinstance(found, Discovered) else None
        except DiscoveryError as error:
            yield error


ANSWERS: Final[Mapping[str, dict[str, Any]]] = {
    "all fine": {},
    "no topic is allowed": {"topics": _REFUSED},
    "no partition is allowed": {"offsets": _REFUSED},
    "no leader": {"offsets": KafkaError.LEADER_NOT_AVAILABLE},
    "a number that cannot be": {"partition": -1},
    **{
        f"fails with {code}": {"failure": code}
        for code in (
            KafkaError._TRANSPORT,
            KafkaError._TIMED_OUT,
            KafkaError._ALL_BROKERS_DOWN,
            KafkaError._AUTHENTICATION,
            KafkaError._SSL,
            KafkaError._INVALID_ARG,
            KafkaError.CLUSTER_AUTHORIZATION_FAILED,
            KafkaError.GROUP_AUTHORIZATION_FAILED,
        )
    },
}


def look_ups(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Yield what is said of questions to brokers."""
    choices: list[dict[str, str]] = [
        {},
        {"subscribe": "", "subscribePattern": "x.*"},
        {"subscribe": "", "assign": '{"t":[0,1]}'},
    ]
    for options in choices:
        for answers in ANSWERS.values():
            yield from map(str, filter(None, asked(monkeypatch, embedded(**options), **answers)))


def starts(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Yield what is said of a topic that is not the one that a history was begun with."""
    histories: list[Mapping[str, Mapping[str, str]]] = [
        {"kafka": {"t": "former"}},
        {"kafka": {"t": ""}},
        {"": {"t": "former"}},
    ]
    for meanings in histories:
        start = AfterHistory(
            offsets={("t", 0): 3}, topics=frozenset({"t"}), meanings=meanings, may_lose=False
        )
        source = replace(embedded(), starting_offsets=start)
        yield from (
            str(e)
            for e in asked(monkeypatch, source)
            if isinstance(e, RefusedDiscoveryError) and "history" in str(e)
        )


def gone(_: pytest.MonkeyPatch) -> Iterator[str]:
    """Yield what the assigning side says of records that may be lost."""
    split = KafkaPartitionSplit(cluster="kafka", topic="t", partition=0, offset=5, topic_id="new")
    source = embedded()
    for exists in (True, False):
        yield from source.unread([split], exists=exists)
    yield from source.begun_late([split])
    yield from source.begun_elsewhere([replace(split, void_commit=2)])
    yield from source.begun_elsewhere([replace(split, void_commit=9)])
    history = AfterHistory(
        offsets={("t", 0): 3}, topics=frozenset({"t"}), may_lose=True, meanings={"kafka": {}}
    )
    yield from replace(source, starting_offsets=history).begun_elsewhere([split])
    former = replace(history, meanings={"kafka": {"t": "former"}})
    yield from replace(source, starting_offsets=former).begun_elsewhere([split])


class Problems:
    """Where a query's problems go."""

    def __init__(self) -> None:
        self.found: list[Problem] = []

    def set_problem(self, _: ProblemKey, problem: Problem | None) -> None:
        self.found += [problem] if problem is not None else []

    def check_problems(self) -> None:
        """Some are fatal."""


def losses(_: pytest.MonkeyPatch) -> Iterator[str]:
    """Yield what planning says of records that are lost."""
    endless = StreamOffset(positions={ONE: 5}, attributes={})
    ending = StreamOffset(positions={ONE: 5}, attributes={ONE: {STOP: 9}})
    looks: list[tuple[StreamOffset, dict[str, Any]]] = [
        (endless, {"recreated": frozenset({ONE})}),
        (endless, {"cuts": {ONE: 2}}),
        (endless, {"deleted": {ONE: 9}}),
        (ending, {"deleted": {ONE: 9}}),
    ]
    for base, seen in looks:
        for policy in OnDataLoss:
            problems = Problems()
            LossProblems(problems, LossCounter(lambda *_: {})).note(
                base, Look(**seen), reading(policy=policy)
            )
            yield from (problem.message for problem in problems.found)


def transactions(_: pytest.MonkeyPatch) -> Iterator[str]:
    """Yield what is said of a transaction that stays open."""
    now, problems = [0.0], Problems()
    transactions = OpenTransactions(
        problems.set_problem, lambda _, ids: dict.fromkeys(ids, 17), clock=lambda: now[0]
    )
    for _second in range(int(2 * (PATIENCE + INTERVAL))):
        now[0] += 1.0
        transactions.note(
            reading().cluster("kafka"), {ONE: SplitEnd(end=10)}, {ONE: Mark(position=10)}
        )
    yield from (problem.message for problem in problems.found)


class Consumer:
    """Gives one message again and again."""

    def __init__(self, given: Any) -> None:
        self._given = given

    def assign(self, _: Any) -> None: ...

    def introduce(self, _: Any) -> None: ...

    def consume(self, *_: Any) -> list[Any]:
        return [self._given]


class NoTopics:
    """An admin client of a task: all topics were created again."""

    def ask_topic_ids(self, *_: Any) -> Callable[[], Mapping[str, str]]:
        return lambda: {"t": "another"}

    def ends(self, *_: Any) -> Mapping[SplitId, SplitEnd]:
        """No log was cut."""
        return {}


def task(monkeypatch: pytest.MonkeyPatch, *, identity: str | None = None) -> str:
    """Return what a task fails with."""
    monkeypatch.setattr(task_reader, "task_admin", lambda *_: NoTopics())
    reader = KafkaTaskReader(
        client_id="me",
        secrets=NO_SECRETS,
        columns=("offset",),
        prefetch=1 << 20,
        implementation="python",
    )
    piece = SplitRange(split_id=ONE, start=0, end=9, identity=identity, term=1)
    settings = embedded().reader_settings()
    with pytest.raises(Exception, match=r"topic|native|arrived|interrupted") as caught:
        list(reader.read(ReaderPartition(subtask_id=0, ranges=(piece,), settings=settings)))
    return str(caught.value)


def tasks(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Yield what tasks fail with that read by the client library for Python."""
    monkeypatch.setattr(task_reader, "STALL", 0.0)
    monkeypatch.setattr(
        task_reader,
        "RangeReaderSettings",
        lambda **given: RangeReaderSettings(**given, stall=0.0),
    )
    codes = (
        KafkaError.OFFSET_OUT_OF_RANGE,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError._FAIL,
    )
    newer = message(leader_epoch=2)
    for given in (newer, *(message(error=KafkaError(code, "no")) for code in codes)):

        @contextmanager
        def borrowed(*_: Any, given: Any = given) -> Iterator[Consumer]:
            yield Consumer(given)

        monkeypatch.setattr(range_reader, "borrowed_consumer", borrowed)
        yield task(monkeypatch)
    monkeypatch.setattr(task_reader, "read_ranges", lambda *_: iter(()))
    yield task(monkeypatch, identity="planned")


class NativeModule(ModuleType):
    """What the compiled module has; each read fails."""

    class NativeReadError(Exception):
        """The base of the others."""

    class NativeLogRewritten(NativeReadError):  # noqa: N818 - the name in the module
        """Text, topic, partition and offset."""

    class NativeOffsetsLost(NativeReadError):  # noqa: N818 - the name in the module
        """A text."""

    class NativeReadStalled(NativeReadError):  # noqa: N818 - the name in the module
        """A text."""

    error: Exception

    def RangeReader(self, *_: Any, **__: Any) -> Any:  # noqa: N802
        raise self.error


def native_tasks(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Yield what tasks fail with that read by the native reader."""
    module = NativeModule(native.MODULE)
    monkeypatch.setitem(sys.modules, native.MODULE, module)
    monkeypatch.setattr(native, "_pool", Pool[Any]())
    monkeypatch.setattr(task_reader, "read_ranges", native.read_ranges)
    text = "cluster kafka, topic t: native"
    for error in (
        module.NativeLogRewritten(text, "t", 0, 7),
        module.NativeOffsetsLost(text),
        module.NativeReadStalled(text),
        module.NativeReadError(text),
    ):
        module.error = error
        yield task(monkeypatch)


KINDS: Final = (look_ups, starts, gone, losses, transactions, tasks, native_tasks)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_no_sentence_gives_the_cluster_a_name(
    monkeypatch: pytest.MonkeyPatch, kind: Callable[[pytest.MonkeyPatch], Iterator[str]]
) -> None:
    sentences = list(kind(monkeypatch))

    assert sentences
    for sentence in sentences:
        assert "cluster kafka" not in sentence
        assert CALLED in sentence
        assert sentence.count("one.example") == 1, "its address is named once"


def test_a_missing_topic_reads_like_this(monkeypatch: pytest.MonkeyPatch) -> None:
    first = next(asked(monkeypatch, embedded(**{"kafka.bootstrap.servers": "localhost:9092"})))

    assert str(first) == (
        "topic absent does not exist on the cluster at localhost:9092: create it, or correct the"
        " subscription; looking again"
    )


def test_the_name_itself_never_changes() -> None:
    """It is in the split ids of each checkpoint, in the enumerator state, and in the rows."""
    source = embedded()

    assert source.scopes() == ("kafka",)
    assert source.reader_settings()["kafka"]["clusters"].keys() == {"kafka"}


def test_a_name_that_the_user_gave_is_used() -> None:
    """Also if it is the very same."""
    cluster = KafkaCluster(name="kafka", bootstrap_servers=SERVERS)

    assert cluster.title == "cluster kafka"
    assert KafkaCluster.from_json("kafka", cluster.to_json()) == cluster
    assert "isNamed" not in cluster.to_json(), "a driver of a former release reads the same"


def test_messages_know_after_a_restart_that_there_is_no_name() -> None:
    assert reading().title("kafka") == CALLED
    assert reading().title("gone") == "cluster gone"


def test_no_other_place_makes_the_words() -> None:
    """A message that writes the name itself would give an unnamed cluster one."""
    folders = [
        "operator/src/balanced_source/connectors/kafka",
        "operator/src/balanced_source_adapters/kafka",
        "spark_app/src/balanced_source_spark/kafka",
    ]
    files = [file for folder in folders for file in (CHECKOUT / folder).glob("**/*.py")]
    own = {file.name for file in files if "cluster {" in file.read_text(encoding="utf-8")}

    # The two others are about a cluster that a user has taken out, and about a wrong call.
    assert own == {"titles.py", "settings.py", "source.py"}
