"""A pytest session that tests mutants instead of the code; see the package."""

import contextlib
import enum
import gc
import os
import pickle
import select
import signal
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType, FunctionType
from typing import Any, Final

import pytest
from _pytest.runner import runtestprotocol

from mutants.sampling import MutantSpec

LIMIT: Final = 120.0
"""Seconds of one mutant. One without a verdict by then counts as a survivor."""

SLOWER: Final = 10.0
"""A test that takes this many times as long as without the change, and 5 s more, has failed: it would not end."""

FunctionKey = tuple[str, str]
"""File and qualified name."""


class Verdict(enum.Enum):
    """What became of a mutant."""

    KILLED = "killed"
    SURVIVED = "survived"
    UNFINISHED = "unfinished"


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """The tests on the unchanged code.

    Attributes:
        seconds: duration of each test, by its index.
        tests: function → indices of the tests that call it, the most specific first.
    """

    seconds: Mapping[int, float]
    tests: Mapping[FunctionKey, Sequence[int]]


@dataclass
class MutantPlugin:
    """Runs mutants in forks of the collected session.

    Attributes:
        specs: the mutants.
        jobs: how many at once.
        told: gets each mutant with its verdict.
        say: gets each line of progress.
        verdicts: of the mutants tested so far, by their number.
    """

    specs: Sequence[MutantSpec]
    jobs: int
    told: Callable[[MutantSpec, Verdict], None]
    say: Callable[[str], None]
    verdicts: dict[int, Verdict] = field(default_factory=dict)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Called by pytest once all tests are collected."""
        with tempfile.TemporaryDirectory() as folder:
            baseline = self._baseline(session.items, Path(folder) / "baseline")
        self.say(f"baseline: {len(session.items)} tests, {sum(baseline.seconds.values()):.0f} s")
        gc.collect()
        waiting, running = list(enumerate(self.specs)), dict[int, tuple[int, float]]()
        while waiting or running:
            while waiting and len(running) < self.jobs:
                number, spec = waiting.pop(0)
                pid = _fork(lambda spec=spec: _test(spec, session.items, baseline))  # type: ignore[misc]
                running[pid] = (number, time.monotonic())
            self._reap(running)
        return True

    def _reap(self, running: dict[int, tuple[int, float]]) -> None:
        for pid, (number, started) in list(running.items()):
            is_over = time.monotonic() - started > LIMIT
            if is_over:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(pid, signal.SIGKILL)
            done, status = os.waitpid(pid, 0 if is_over else os.WNOHANG)
            if done:
                del running[pid]
                self.verdicts[number] = Verdict.UNFINISHED if is_over else _verdict(status)
                self.told(self.specs[number], self.verdicts[number])
        if running:
            select.select([], [], [], 0.01)

    def _baseline(self, items: Sequence[pytest.Item], file: Path) -> Baseline:
        pid = _fork(lambda: file.write_bytes(pickle.dumps(_observe(items))) and 0)
        _, status = os.waitpid(pid, 0)
        if status:
            raise SystemExit("mutants: the tests fail without any mutant: run make test-unit")
        baseline: Baseline = pickle.loads(file.read_bytes())  # noqa: S301 - written by our own fork
        return baseline


def _verdict(status: int) -> Verdict:
    return Verdict.SURVIVED if status == 0 else Verdict.KILLED


def _fork(work: Callable[[], int]) -> int:
    """Run `work` in a fork whose exit status is what it returns; its output goes nowhere."""
    pid = os.fork()
    if pid:
        return pid
    os.setsid()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nowhere, stream)
    status = 1
    try:
        status = int(work() or 0)
    finally:
        os._exit(status)


def _observe(items: Sequence[pytest.Item]) -> Baseline:
    """Run all tests once and note which functions each of them calls."""
    seconds: dict[int, float] = {}
    called: dict[FunctionKey, set[int]] = defaultdict(set)
    for number, item in enumerate(items):
        keys: set[FunctionKey] = set()
        started = time.monotonic()
        with _watched(keys):
            if not _passes(item, items[number + 1] if number + 1 < len(items) else None):
                raise SystemExit(1)
        seconds[number] = time.monotonic() - started
        for key in keys:
            called[key].add(number)
    breadth = defaultdict[int, int](int)
    for numbers in called.values():
        for number in numbers:
            breadth[number] += 1
    order = {key: sorted(numbers, key=lambda n: (breadth[n], seconds[n])) for key, numbers in called.items()}
    return Baseline(seconds=seconds, tests=order)


@contextlib.contextmanager
def _watched(keys: set[FunctionKey]) -> Iterator[None]:
    def note(frame: FrameType, event: str, _argument: Any) -> None:
        code = frame.f_code
        if event == "call" and "/src/balanced_source" in code.co_filename:
            keys.add((code.co_filename, code.co_qualname))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def _passes(item: pytest.Item, following: pytest.Item | None) -> bool:
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports = runtestprotocol(item, log=False, nextitem=following)
    return not any(report.failed for report in reports)


def _test(spec: MutantSpec, items: Sequence[pytest.Item], baseline: Baseline) -> int:
    """Return 0 if the mutant survives all tests that call its function."""
    key = (str(spec.file), spec.function)
    numbers = list(baseline.tests.get(key, ()))
    _break(spec)
    for number, following in zip(numbers, [*numbers[1:], None], strict=True):
        signal.signal(signal.SIGALRM, lambda *_: os._exit(1))
        signal.setitimer(signal.ITIMER_REAL, 5 + SLOWER * baseline.seconds[number])
        if not _passes(items[number], items[following] if following is not None else None):
            return 1
    return 0


def _break(spec: MutantSpec) -> None:
    """Exchange the code of the function wherever it is referred to."""
    code = spec.code()
    for thing in gc.get_objects():
        if isinstance(thing, FunctionType):
            old = thing.__code__
            if old.co_filename == str(spec.file) and old.co_qualname == spec.function:
                thing.__code__ = code
