"""Executors and the number of readers: who waits for whom."""

import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from balanced_source_spark import executors
from balanced_source_spark.executors import (
    AdoptionGate,
    Board,
    ExecutorScaler,
    ExecutorStep,
    next_step,
)
from balanced_source_spark.options import Options
from support.journal_query import Make
from support.planned_query import PlannedQuery
from support.tapes import TapeHalf, shelf
from support.world import Broker, kafka_source


@pytest.mark.parametrize(
    ("wanted", "adopted", "executors", "expected"),
    [
        (4, 2, 1, ExecutorStep(total=2, ready=2)),
        (4, 2, 2, ExecutorStep(ready=4)),
        (2, 4, 2, ExecutorStep(ready=4)),  # the smaller number is not adopted yet
        (2, 2, 2, ExecutorStep(surplus=1, ready=4)),
        (5, 4, 2, ExecutorStep(total=3, ready=4)),
    ],
)
def test_executors_are_asked_for_before_and_given_back_after(
    wanted: int, adopted: int, executors: int, expected: ExecutorStep
) -> None:
    step = next_step(wanted=wanted, adopted=adopted, executors=executors, slots=2, is_elastic=False)

    assert step == expected


@pytest.mark.parametrize(
    ("wanted", "adopted", "executors", "expected"),
    [
        (2, 2, 3, ExecutorStep(ready=6)),  # one is needed, two are spares
        (6, 2, 3, ExecutorStep(total=5, ready=6)),  # the spares suffice, and are replaced
        (7, 2, 3, ExecutorStep(total=6, ready=6)),  # they do not: one reader waits
        (2, 6, 5, ExecutorStep(ready=10)),  # the smaller number is not adopted yet
        (2, 2, 5, ExecutorStep(surplus=2, ready=10)),
        (2, 2, 1, ExecutorStep(total=3, ready=2)),  # a spare has died
    ],
)
def test_spares_stay_beside_what_readers_need(
    wanted: int, adopted: int, executors: int, expected: ExecutorStep
) -> None:
    step = next_step(
        wanted=wanted, adopted=adopted, executors=executors, slots=2, is_elastic=False, spares=2
    )

    assert step == expected


def test_one_executor_stays_while_no_number_of_readers_is_known() -> None:
    step = next_step(wanted=0, adopted=0, executors=2, slots=1, is_elastic=False)

    assert step == ExecutorStep(surplus=1, ready=2)


def test_dynamic_allocation_is_left_alone() -> None:
    assert next_step(wanted=9, adopted=1, executors=1, slots=1, is_elastic=True) == ExecutorStep(
        ready=9
    )


def test_a_larger_parallelism_waits_until_executors_are_ready(tmp_path: Path) -> None:
    board = Board(tmp_path)
    gate = AdoptionGate(board)

    assert not gate(adopted=2, wanted=4)
    assert board.read("wanted") == 4
    board.post("ready", 4)
    assert gate(adopted=2, wanted=4)
    gate.note(4)
    assert board.read("adopted") == 4


def test_a_smaller_parallelism_and_the_first_one_do_not_wait(tmp_path: Path) -> None:
    gate = AdoptionGate(Board(tmp_path))

    assert gate(adopted=4, wanted=2)
    assert gate(adopted=4, wanted=4)
    assert gate(adopted=0, wanted=4)
    assert AdoptionGate(None)(adopted=1, wanted=9)


def test_waiting_ends(tmp_path: Path) -> None:
    assert AdoptionGate(Board(tmp_path), patience=0)(adopted=1, wanted=9)


def test_the_number_of_readers_is_posted_when_it_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    posted: list[int] = []
    post = Board.post

    def recorded(board: Board, name: str, number: int) -> None:
        posted.append(number)
        post(board, name, number)

    monkeypatch.setattr(Board, "post", recorded)
    gate = AdoptionGate(Board(tmp_path))

    for adopted in (2, 2, 3, 3, 2):
        gate.note(adopted)

    assert posted == [2, 3, 2], "not at each micro-batch"


class Cluster:
    """A Spark driver behind py4j, and its executors.

    Attributes:
        calls: what was asked of Spark: a total, or the executors to end.
    """

    def __init__(self, conf: Mapping[str, str], *, master: str = "k8s://here") -> None:
        self.calls: list[int | list[str]] = []
        self.executors: list[str] = []
        self.target = 0
        self._looks: list[Callable[[], None]] = []
        self._conf, self._master = conf, master

    def run(self, board: Board, *looks: Callable[[], None], spares: int = 0) -> None:
        """Let the scaler look as often as there are looks; each says what has happened before."""
        self._looks = [*looks]
        self._scaler = ExecutorScaler(self.session, board, spares=spares)
        self._step()
        self._scaler.start()

    @property
    def session(self) -> Any:
        context = SimpleNamespace(
            master=lambda: self._master,
            getExecutorIds=self._ids,
            requestTotalExecutors=self._request,
            killExecutors=self._kill,
        )
        map_class = SimpleNamespace(**{"MODULE$": SimpleNamespace(empty=dict)})
        converters = SimpleNamespace(asScala=lambda ids: SimpleNamespace(toSeq=lambda: list(ids)))
        jvm = SimpleNamespace(
            java=SimpleNamespace(util=SimpleNamespace(ArrayList=JavaList)),
            scala=SimpleNamespace(
                jdk=SimpleNamespace(javaapi=SimpleNamespace(CollectionConverters=converters))
            ),
            **{"scala.collection.immutable.Map$": map_class},
        )
        java_context = SimpleNamespace(sc=lambda: context)
        spark = SimpleNamespace(_jsc=java_context, _jvm=jvm, getConf=lambda: self._conf)
        return SimpleNamespace(sparkContext=spark)

    def _request(self, total: int, local: int, _tasks: object) -> None:
        assert local == 0, "no task prefers a place"
        self.calls.append(total)
        self.target = total

    def _kill(self, ids: list[str]) -> None:
        self.calls.append(ids)
        # `SparkContext.killExecutors` adjusts the target, so that none is replaced
        self.target = max(0, self.target - len(ids))

    def _ids(self) -> Any:
        ids = [*self.executors]
        self._step()
        return SimpleNamespace(size=lambda: len(ids), apply=ids.__getitem__)

    def _step(self) -> None:
        if self._looks:
            self._looks.pop(0)()
        else:
            self._scaler.close()


class JavaList(list[str]):
    def add(self, member: str) -> None:
        self.append(member)


class InThisThread:
    """A thread that runs at once."""

    def __init__(self, *, target: Callable[[], None], name: str, daemon: bool) -> None:
        assert daemon, f"the process would wait for {name}"
        self.start = target


@pytest.fixture
def board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Board:
    monkeypatch.setattr(executors, "_LOOK", 0.0)
    stand_in = SimpleNamespace(Thread=InThisThread, Event=threading.Event)
    monkeypatch.setattr(executors, "threading", stand_in)
    return Board(tmp_path)


CORES = {"spark.executor.cores": "4", "spark.task.cpus": "2"}
"""An executor runs two tasks at once."""


def state(
    cluster: Cluster, board: Board, wanted: int, adopted: int, ids: Sequence[str]
) -> Callable[[], None]:
    """The readers that the planning process has posted, and the executors that have registered."""

    def set_it() -> None:
        board.post("wanted", wanted)
        board.post("adopted", adopted)
        cluster.executors = [*ids]

    return set_it


def test_missing_executors_are_requested_once(
    board: Board, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = Cluster(CORES)
    waiting = state(cluster, board, 5, 2, ["1"])

    cluster.run(board, waiting, waiting, state(cluster, board, 7, 2, ["1"]))

    assert cluster.calls == [3, 4]
    assert board.read("ready") == 2
    assert capsys.readouterr().out.count("asking for executors") == 2


def test_nothing_is_requested_before_the_planning_process_has_posted_a_number(
    board: Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Waking(threading.Event):
        waits = 0

        def wait(self, timeout: float | None = None) -> bool:
            Waking.waits += 1
            if Waking.waits == 3:
                board.post("wanted", 5)
            return super().wait(timeout)

    monkeypatch.setattr(executors.threading, "Event", Waking)
    cluster = Cluster(CORES)

    cluster.run(board, lambda: None)

    assert cluster.calls == [3]
    assert Waking.waits == 4


def test_the_number_of_executors_is_posted_when_it_changes(
    board: Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    posted: list[str] = []
    post = Board.post

    def recorded(board: Board, name: str, number: int) -> None:
        posted.append(name)
        post(board, name, number)

    monkeypatch.setattr(Board, "post", recorded)
    cluster = Cluster(CORES)
    enough = state(cluster, board, 4, 4, ["1", "2"])

    cluster.run(board, enough, enough, state(cluster, board, 4, 4, ["1", "2", "3"]))

    assert posted.count("executors") == 2


def test_the_newest_executors_are_given_back_once(
    board: Board, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ended ones stay listed for a while."""
    cluster = Cluster(CORES)
    fewer = state(cluster, board, 3, 3, ["8", "11", "10", "9"])

    cluster.run(board, fewer, fewer)

    assert cluster.calls == [["10", "11"], 2]
    assert cluster.target == 2, "Spark replaces one that fails later"
    assert board.read("ready") == 8
    assert capsys.readouterr().out.count("giving executors back") == 1


def test_executors_that_are_still_missing_are_asked_for_once_more(
    board: Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executors, "AGAIN", 0.0)
    monkeypatch.setattr(executors, "time", SimpleNamespace(monotonic=lambda: 5.0))
    cluster = Cluster(CORES)
    fewer = state(cluster, board, 2, 2, ["8", "9"])
    none_left = state(cluster, board, 2, 2, [])

    cluster.run(board, fewer, none_left, none_left)

    assert cluster.calls == [["9"], 1, 1, 1]
    assert board.known("executors") == 0


@pytest.mark.parametrize(
    ("posted", "is_told"),
    [
        ({"executors": 0, "adopted": 2}, True),
        ({"executors": 1, "adopted": 2}, False),
        ({"executors": 0}, False),
        ({"adopted": 2}, False),
    ],
    ids=["none", "one", "before the first micro-batch", "not counted"],
)
def test_a_driver_without_executors_is_told_after_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, posted: Mapping[str, int], *, is_told: bool
) -> None:
    board, clock = Board(tmp_path), iter([10.0, 129.9, 130.0])
    monkeypatch.setattr(executors, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    gate = AdoptionGate(board)
    for name, number in posted.items():
        board.post(name, number)

    found = [gate.problem() for _ in range(3)]

    assert [problem is not None for problem in found] == [False, False, is_told]
    board.post("executors", 1)
    assert gate.problem() is None


def test_a_query_with_dynamic_allocation_may_have_no_executor(board: Board) -> None:
    cluster = Cluster({**CORES, "spark.dynamicAllocation.enabled": "true"})

    cluster.run(board, state(cluster, board, 2, 2, []))

    assert board.known("executors") is None


def test_spares_are_requested_and_kept(board: Board) -> None:
    cluster = Cluster(CORES)
    bare = state(cluster, board, 4, 4, ["1", "2"])

    cluster.run(board, bare, state(cluster, board, 4, 4, ["1", "2", "3"]), spares=1)

    assert cluster.calls == [3]


def test_the_adopted_readers_count_while_no_number_is_wanted(board: Board) -> None:
    cluster = Cluster({})

    cluster.run(board, state(cluster, board, 0, 3, ["1"]))

    assert cluster.calls == [3], "one task per executor"


def test_with_enough_executors_nothing_is_requested(board: Board) -> None:
    cluster = Cluster(CORES)

    cluster.run(board, state(cluster, board, 4, 4, ["1", "2"]))

    assert cluster.calls == []
    assert board.read("ready") == 4


def test_an_executor_smaller_than_a_task_counts_as_one(board: Board) -> None:
    cluster = Cluster({"spark.task.cpus": "2"})

    cluster.run(board, state(cluster, board, 2, 1, ["1"]))

    assert cluster.calls == [2]


def test_dynamic_allocation_decides_alone(board: Board) -> None:
    cluster = Cluster({"spark.dynamicAllocation.enabled": "True"})

    cluster.run(board, state(cluster, board, 9, 1, ["1"]))

    assert cluster.calls == []
    assert board.read("ready") == 9


def test_dynamic_allocation_is_ready_for_the_adopted_readers(board: Board) -> None:
    cluster = Cluster({"spark.dynamicAllocation.enabled": "true"})

    cluster.run(board, state(cluster, board, 0, 3, ["1"]))

    assert board.read("ready") == 3


@pytest.mark.parametrize("master", ["local", "local[2]"])
def test_local_tasks_wait_for_no_executors(board: Board, master: str) -> None:
    cluster = Cluster({}, master=master)

    cluster.run(board)

    assert board.read("ready") == sys.maxsize


def test_a_failure_of_spark_is_logged_and_looked_at_again(
    board: Board, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = Cluster({})

    def fail() -> None:
        board.post("wanted", 2)
        cluster.executors = ["no number"] * 3

    cluster.run(board, fail, state(cluster, board, 4, 2, ["1"]))

    assert "cannot change the number of executors now" in capsys.readouterr().out
    assert cluster.calls == [4]


def test_a_number_that_changes_while_it_waits_begins_to_wait_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [0.0]
    monkeypatch.setattr(executors, "time", SimpleNamespace(monotonic=lambda: now[0]))
    gate = AdoptionGate(Board(tmp_path), patience=10.0)

    assert not gate(adopted=1, wanted=2)
    now[0] = 9.0
    assert not gate(adopted=1, wanted=3)
    now[0] = 18.9
    assert not gate(adopted=1, wanted=3)
    assert "not all requested executors" not in capsys.readouterr().out
    now[0] = 19.0
    assert gate(adopted=1, wanted=3)
    assert "not all requested executors are available yet" in capsys.readouterr().out


def test_planning_posts_how_many_readers_the_newest_micro_batch_has(tmp_path: Path) -> None:
    """Without it, executors would not be given back, and people not told that there are none."""
    broker, board = Broker(), Board(tmp_path)
    broker.create("c", "t", range(4), end=7)
    options = Options(start_timeout=5.0, executors_dir=tmp_path, executor_patience=0.0)
    query = PlannedQuery(source=kafka_source("c"), broker=broker, options=options, parallelism=2)

    query.trigger_until(lambda: query.records.total() == 28, "all to be read")
    assert board.read("adopted") == 2
    query.channel.rescale(3)
    query.trigger_until(lambda: query.last.parallelism == 3, "three readers")
    query.close()

    assert board.read("adopted") == 3


def test_planning_with_a_journal_posts_it_as_well(make: Make, tmp_path: Path) -> None:
    query, board = make(TapeHalf(shelf())), Board(tmp_path / "board")
    board.folder.mkdir()
    query.planner.__dict__["_gate"] = AdoptionGate(board)

    assert query.trigger()

    assert board.read("adopted") == query.last.parallelism == 2
