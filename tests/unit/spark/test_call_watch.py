"""Code of a connector that does not return is told of: it raises nothing that could be."""

import gc
import threading
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from balanced_source.api import Problem, ProblemKey
from balanced_source.errors import ConnectorError
from balanced_source.reasons import Reason
from balanced_source_spark.contract import call_watch
from balanced_source_spark.contract.call_watch import HANGS, CallWatch
from balanced_source_spark.contract.checked_hooks import hooks_of
from balanced_source_spark.contract.hooks import PlannerHooks
from balanced_source_spark.contract.mistakes import ExplainingProxy
from support.planner_context import CONTEXT
from testbed.waiting import wait_until


class Slow(PlannerHooks):
    """Its methods return when a test says so."""

    def __init__(self) -> None:
        self.is_in = threading.Event()
        self.may_return = threading.Event()

    def ends(self, *_: Any) -> Mapping[Any, Any]:
        return {}

    def admit(self, held: Any, reachable: Any, *, may_wait: bool) -> Any:
        self.is_in.set()
        assert self.may_return.wait(30)
        return reachable

    def close(self) -> None:
        self.admit({}, {}, may_wait=True)


@pytest.fixture
def slow() -> Iterator[Slow]:
    made = Slow()
    yield made
    made.may_return.set()


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_watch, "HANGS", 0.0)
    monkeypatch.setattr(call_watch, "_LOOK", 0.01)
    monkeypatch.setattr(call_watch._Watcher, "_made", None)


def test_a_hook_that_hangs_is_a_problem_until_it_returns(slow: Slow) -> None:
    found: dict[ProblemKey, Problem | None] = {}
    half: Any = type("Half", (), {"hooks": lambda *_: slow})()
    context = replace(CONTEXT, set_problem=found.__setitem__)
    hooks = hooks_of(half, context, connector="odd")
    caller = threading.Thread(target=lambda: hooks.admit({}, {}, may_wait=True))
    caller.start()
    assert slow.is_in.wait(30)

    wait_until(lambda: any(found.values()), 30, "a problem")
    (problem,) = found.values()
    slow.may_return.set()
    caller.join(30)
    wait_until(lambda: not any(found.values()), 30, "its end")

    assert problem is not None
    assert problem.reason is Reason.CONNECTOR_BROKEN
    assert problem.message.startswith("connector 'odd' of an unknown package has been in admit for")
    assert "report this to the authors of the package" in problem.message


def test_a_part_of_a_task_that_hangs_is_logged_once(slow: Slow) -> None:
    proxy: Any = ExplainingProxy(slow, "odd")
    with capture_logs() as lines:
        caller = threading.Thread(target=proxy.close)
        caller.start()
        wait_until(lambda: lines, 30, "a line")
        slow.may_return.set()
        caller.join(30)

    assert [line["event"].partition(" for ")[0] for line in lines] == [
        "connector 'odd' of an unknown package has been in close"
    ]


def test_calls_that_return_are_not_told_of() -> None:
    told: list[float | None] = []
    watch = CallWatch(told.append)
    call_watch.HANGS = HANGS
    watch.look(100.0)
    watch.since = 100.0
    watch.look(100.0 + HANGS - 1)
    watch.since = 0.0
    watch.look(100.0 + HANGS)
    assert told == []

    watch.since = 100.0
    for late in (0, 1, 2):
        watch.look(100.0 + HANGS + late)
    watch.since = 0.0
    watch.look(300.0)
    assert told == [HANGS, None], "once"


def test_what_is_watched_goes_with_its_last_user(slow: Slow) -> None:
    """In a cycle, the readers of a task would stay until the collector finds them."""
    proxy: Any = ExplainingProxy(slow, "odd")
    hooks: Any = hooks_of(
        cast("Any", SimpleNamespace(hooks=lambda _: slow)), CONTEXT, connector="odd"
    )
    slow.may_return.set()
    gone = [weakref.ref(each) for each in (proxy, hooks)]
    gc.disable()
    try:
        for each in (proxy, hooks):
            each.admit({}, {}, may_wait=True)
        del proxy, hooks, each
        assert [reference() for reference in gone] == [None, None]
    finally:
        gc.enable()


def test_a_property_that_fails_is_a_mistake_of_the_connector() -> None:
    class Odd:
        @property
        def ends(self) -> object:
            raise KeyError("shard-1")

    proxy: Any = ExplainingProxy(Odd(), "odd")
    with pytest.raises(ConnectorError, match=r"connector 'odd'.*ends.*shard-1"):
        _ = proxy.ends
