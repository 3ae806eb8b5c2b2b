"""Which lines wait for structlog, who logs them and when: without another process or thread."""

import threading
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from balanced_source_adapters import lazy_log

pytestmark = pytest.mark.unit


@dataclass
class LineStub:
    """A line that notes when it is logged."""

    event: str
    level: str
    into: list[str]
    then: Callable[[], None] = lambda: None

    def log(self) -> None:
        self.into.append(self.event)
        self.then()


@dataclass
class Process:
    """A process with `structlog` or without, whose threads run when the test says so.

    Attributes:
        modules: that are loaded.
        is_alive: whether its main thread is.
        has_threads: whether it may start another one.
        threads: that were started: their names and what they run.
        waits: seconds for which one has waited for the end of the main thread.
        logged: events, in their order.
        lines: under test.
    """

    modules: dict[str, Any] = field(default_factory=dict)
    is_alive: bool = True
    has_threads: bool = True
    threads: list[tuple[str, Callable[[], None]]] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    logged: list[str] = field(default_factory=list)
    lines: Any = None

    def log(self, event: str, level: str = "info", then: Callable[[], None] = lambda: None) -> None:
        self.lines.log(LineStub(event, level, self.logged, then))

    def run_threads(self) -> None:
        while self.threads:
            self.threads.pop(0)[1]()

    def main_thread(self) -> Any:
        return types.SimpleNamespace(is_alive=lambda: self.is_alive, join=self.waits.append)

    def thread(self, target: Callable[..., None], args: tuple[float, ...], name: str) -> Any:
        def start() -> None:
            if not self.has_threads:
                raise RuntimeError("can't start new thread")
            self.threads.append((name, lambda: target(*args)))

        return types.SimpleNamespace(start=start)


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch) -> Process:
    found = Process()
    monkeypatch.setattr(lazy_log, "sys", types.SimpleNamespace(modules=found.modules))
    stand_in = types.SimpleNamespace(
        Lock=threading.Lock,
        RLock=threading.RLock,
        main_thread=found.main_thread,
        Thread=found.thread,
    )
    monkeypatch.setattr(lazy_log, "threading", stand_in)
    found.lines = lazy_log._Lines()
    return found


def test_the_first_lines_are_logged_by_one_thread_a_moment_later(process: Process) -> None:
    for event in ("a", "b", "c"):
        process.log(event)
    assert process.logged == []
    assert [name for name, _ in process.threads] == ["bsrc-log"]

    process.run_threads()
    assert process.logged == ["a", "b", "c"]
    assert process.waits == [lazy_log.LATER], "less if the process ends"


def test_a_line_with_structlog_is_logged_by_who_calls(process: Process) -> None:
    process.modules["structlog"] = None
    process.log("a")
    assert (process.logged, process.threads) == (["a"], [])


def test_lines_that_wait_come_first_even_where_structlog_is_loaded_meanwhile(
    process: Process,
) -> None:
    process.log("a")
    process.modules["structlog"] = None
    process.log("b")
    assert process.logged == []
    process.run_threads()
    assert process.logged == ["a", "b"]

    process.log("c")
    assert process.logged == ["a", "b", "c"], "at once: nothing waits any more"


def test_after_a_thread_without_structlog_the_next_line_starts_another(process: Process) -> None:
    process.log("a")
    process.run_threads()
    process.log("b")
    assert (process.logged, len(process.threads)) == (["a"], 1)


def test_a_line_that_comes_while_others_are_logged_is_logged_after_them(process: Process) -> None:
    process.log("a", then=lambda: process.log("c"))
    process.log("b")
    process.run_threads()
    assert process.logged == ["a", "b", "c"]
    assert process.threads == []


@pytest.mark.parametrize("level", ["warning", "error"])
def test_an_urgent_line_brings_those_that_wait_with_it(process: Process, level: str) -> None:
    process.log("a")
    process.log("b", level)
    assert process.logged == ["a", "b"]
    assert process.waits == []

    process.run_threads()
    assert process.logged == ["a", "b"], "none is logged twice"


@pytest.mark.parametrize("level", ["warning", "error"])
def test_an_urgent_line_that_is_the_first_needs_no_thread(process: Process, level: str) -> None:
    process.log("a", level)
    assert (process.logged, process.threads) == (["a"], [])


@pytest.mark.parametrize("lacks", ["is_alive", "has_threads"])
def test_a_process_that_can_start_no_thread_logs_at_once(process: Process, lacks: str) -> None:
    """Its interpreter is ending, or there are too many threads."""
    setattr(process, lacks, False)
    process.log("a")
    assert (process.logged, process.threads, process.waits) == (["a"], [], [])
