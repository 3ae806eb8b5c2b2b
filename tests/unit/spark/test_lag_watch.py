"""The lag that people see while a micro-batch runs for long."""

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from balanced_source_spark import lag_watch, planner_figures
from balanced_source_spark.lag_watch import LagWatch
from balanced_source_spark.stream_reader import UNLIMITED
from support.journal_query import Make
from support.planned_query import PlannedQuery, all_of
from support.tapes import TapeHalf, shelf
from support.world import Broker, kafka_source
from testbed.waiting import wait_until


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looks come at once, where a query runs."""
    monkeypatch.setattr(
        planner_figures,
        "LagWatch",
        lambda look, turn: LagWatch(look, turn=turn, every=0.01),
    )


@pytest.fixture
def query() -> Iterator[PlannedQuery]:
    broker = Broker()
    broker.create("c", "t", range(2), end=7)
    made = PlannedQuery(source=kafka_source("c"), broker=broker)
    made.trigger_until(lambda: made.records == all_of(broker), "all to be read")
    yield made
    made.close()


def lag_of(query: Any) -> int | None:
    return query.planner._runtime._progress.lag  # type: ignore[no-any-return]


def test_the_lag_grows_while_a_micro_batch_runs(query: PlannedQuery) -> None:
    query.broker.ends = dict.fromkeys(query.broker.ends, 100)
    query.planner.latestOffset(query.offsets[-1], UNLIMITED)
    shown = query.planner._shown
    assert lag_of(query) == 2 * (100 - 7)

    query.broker.ends = dict.fromkeys(query.broker.ends, 1_000)

    wait_until(lambda: lag_of(query) == 2 * (1_000 - 7), 10, "the new records to count")
    metrics = query.planner._runtime._progress.metrics()
    assert metrics["unread"] == 2 * (1_000 - 7)
    assert query.planner._shown is shown, "what the micro-batch is going to leave"


def test_a_report_never_has_new_positions_with_the_lag_of_before(
    query: PlannedQuery, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be written at any time; the micro-batch would count as delivered and as unread."""
    query.broker.ends = dict.fromkeys(query.broker.ends, 100)
    query.trigger_until(lambda: query.records == all_of(query.broker), "all to be read")
    runtime, seen = query.planner._runtime, []

    def look(_: object) -> None:
        """The runtime knows by now that the micro-batch was delivered."""
        host, progress = runtime._host, runtime._progress
        assert host is not None
        positions = sum(p or 0 for p in host.committed.values())
        seen.append((positions, progress.lag, progress.metrics()["unread"]))

    monkeypatch.setattr(query.hooks, "note_delivered", look)
    query.trigger()

    assert seen == [(200, 0, 0)]


def test_a_report_says_when_the_driver_has_looked_while_anything_is_unread(
    query: PlannedQuery,
) -> None:
    """A report that says nothing new must not differ from the one before."""
    query.planner.latestOffset(query.offsets[-1], UNLIMITED)
    assert "unreadAt" not in query.planner._runtime._progress.metrics()

    query.broker.ends = dict.fromkeys(query.broker.ends, 100)
    begin = time.time()
    query.planner.latestOffset(query.offsets[-1], UNLIMITED)
    assert query.planner._runtime._progress.metrics()["unreadAt"] >= round(begin, 3)


def test_a_cluster_that_falls_silent_meanwhile_has_an_unknown_lag(
    query: PlannedQuery, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the query continues: the look of another thread must not end it."""
    asked = threading.Event()

    def silent(*_: Any) -> Any:
        asked.set()
        raise OSError("a fault that no contract knows")

    monkeypatch.setattr(query.admin, "ends", silent)
    assert asked.wait(10)
    monkeypatch.undo()

    query.broker.ends = dict.fromkeys(query.broker.ends, 20)
    query.trigger_until(lambda: query.records == all_of(query.broker), "all to be read")


def test_records_that_a_journal_has_delivered_are_no_lag(make: Make) -> None:
    """A journal's micro-batch is known when it is read."""
    query = make(TapeHalf(shelf(), knows_ends=True), max_records=None)
    query.read_all()
    query.trigger()

    assert query.told["lag"] == 0
    assert lag_of(query) == 0
    query.half.shelf.lengths["tape-0"] += 50
    wait_until(lambda: lag_of(query) == 50, 10, "the new records to count")


def test_a_planner_that_plans_is_left_alone() -> None:
    looks, turn = threading.Event(), threading.Lock()
    with turn:
        watch = LagWatch(looks.set, turn=turn, every=0.01)
        assert not looks.wait(0.1)
    assert looks.wait(10)
    watch.close()


def test_a_look_that_fails_ends_nothing() -> None:
    looks = threading.Semaphore(0)

    def fails() -> None:
        looks.release()
        raise OSError("no route to host")

    watch = LagWatch(fails, turn=threading.Lock(), every=0.01)

    assert all(looks.acquire(timeout=10) for _ in range(3))
    watch.close()


def test_it_waits_as_long_as_between_two_heartbeats() -> None:
    """More often would cost servers, and no report would say it."""
    looks = threading.Event()
    watch = LagWatch(looks.set, turn=threading.Lock())

    watch.planner_looked()

    assert lag_watch.EVERY - 1 < watch._left() <= lag_watch.EVERY
    assert not looks.is_set()
    watch.close()
