"""Which tests execute which lines, and how long each test takes."""

import bisect
import contextlib
import hashlib
import os
import pickle
import select
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, count
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final

import pytest

from mutants.forks import BROKEN, fork, limited, passes

Line = tuple[str, int]
"""File and number."""

_WATCHED: Final = "/src/balanced_source"


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One test on the unchanged code, while lines are recorded, which makes it slower.

    Attributes:
        files: digests of the files of the test and of the product that it executes.
        seconds: duration.
        cpu: seconds of processor time.
        is_good: whether it passes in time.
        lines: of the product that it executes.
    """

    files: Mapping[str, str]
    seconds: float
    cpu: float
    is_good: bool
    lines: frozenset[Line]


_UNUSABLE: Final = Observation(files={}, seconds=0.0, cpu=0.0, is_good=False, lines=frozenset())
"""A test that was too slow, or that ended its process."""

_NEAR: Final = 0.1
"""Weight of the time of tests that are about the changed code: slow ones that explore it notice
more than a thousand quick ones that only pass by."""

_SHARES: Final = 20
"""Into how many shares the tests are divided for each fork that runs at once."""

_NUMBERS: Final = count()

_EVERYWHERE: Final = frozenset({"", "tests", "unit", "contract", "operator", "init"})
"""Names of folders that say nothing of what a test is about."""

_TOO_SLOW: Final = 3
"""Exit status of a fork that is ended in a test.

An exception would be caught by an event loop, which then hangs.
"""


class Baseline:
    """The tests on the unchanged code.

    Attributes:
        failed: indices of tests that fail without any mutant; they kill none.
    """

    def __init__(self, observations: Sequence[Observation], nodeids: Sequence[str]) -> None:
        """Args: what was observed of each test; and its name in pytest."""
        self._observations = observations
        self._about = [_names(nodeid.partition("::")[0]) for nodeid in nodeids]
        self._excluded: set[int] = set()
        self._tests: dict[Line, list[int]] = defaultdict(list)
        for number, observation in enumerate(observations):
            for line in observation.lines if observation.is_good else ():
                self._tests[line].append(number)
        self.failed = [
            number for number, observation in enumerate(observations) if not observation.is_good
        ]

    def of_lines(self, file: Path, spans: Sequence[range]) -> Sequence[int]:
        """Return the tests of the first range of lines that a test executes.

        The fastest come first, and those about the same part of the code base before others.
        """
        about = _names(str(file).rpartition("/src/")[2])

        def rank(number: int) -> float:
            return self.cpu(number) * (_NEAR if about & self._about[number] else 1)

        for span in spans:
            found = {
                number for line in span for number in self._tests.get((str(file), line), ())
            } - self._excluded
            if found:
                return sorted(found, key=rank)
        return ()

    def exclude(self, number: int) -> None:
        """Never return this test again."""
        self._excluded.add(number)

    def affordable(self, numbers: Sequence[int], budget: float) -> Sequence[int]:
        """Return the first tests that take `budget` seconds of processor time together.

        At least one.
        """
        spent = list(accumulate(self.cpu(number) for number in numbers))
        return numbers[: max(1, bisect.bisect_right(spent, budget))]

    def cpu(self, number: int) -> float:
        """Return the seconds of processor time that a test takes."""
        return self._observations[number].cpu

    def seconds(self, number: int) -> float:
        """Return the duration of a test."""
        return self._observations[number].seconds


def observe(
    items: Sequence[pytest.Item],
    store: Path,
    slowest: float,
    *,
    jobs: int = 1,
    say: Callable[[str], None] = lambda _: None,
) -> Baseline:
    """Return the baseline of all tests.

    A test is stopped after `slowest` seconds of processor time, and not used.

    Tests that `store` does not know, or that execute a file that has changed since, run in `jobs`
    forks at once and are added to it.
    """
    known = dict(_stored(store))
    missing = [item for item in items if item.nodeid not in known]
    size = -(-len(missing) // (_SHARES * jobs)) or 1
    waiting = [missing[at : at + size] for at in range(0, len(missing), size)]
    running: list[_Share] = []
    while waiting or running:
        while waiting and len(running) < jobs:
            running.append(_Share(waiting.pop(0), store, slowest))
        if (ended := next(filter(_Share.has_ended, running), None)) is None:
            select.select([], [], [], 0.01)
            continue
        running.remove(ended)
        known |= ended.observed()
        if left := [item for item in ended.items if item.nodeid not in known]:
            known[left[0].nodeid] = _UNUSABLE  # it has ended the fork
            waiting[:0] = [left[1:]] if left[1:] else []
        else:
            done = sum(item.nodeid in known for item in items)
            say(f"baseline: {done:,} of {len(items):,} tests")
    nodeids = [item.nodeid for item in items]
    return Baseline([known[nodeid] for nodeid in nodeids], nodeids)


def _names(path: str) -> frozenset[str]:
    """Return the parts of the code base that a module is in, or that a file of tests is about."""
    folders = Path(path).with_suffix("").parts
    names = (part.removeprefix("balanced_source").strip("_") for part in folders)
    return frozenset(name.removeprefix("test_") for name in names) - _EVERYWHERE


class _Share:
    """Tests that run one after the other in a fork.

    Args:
        items: the tests.
        store: gets what was observed when the fork has ended.
        slowest: see `observe`.
    """

    def __init__(self, items: Sequence[pytest.Item], store: Path, slowest: float) -> None:
        self.items = items
        self._store = store
        # Two forks cannot write to one file
        self._part = store.with_name(f"{store.name}.{next(_NUMBERS)}")
        self._part.unlink(missing_ok=True)  # of a campaign that was stopped
        self._errors = store.with_name(f"{self._part.name}.errors")
        self._status: int | None = None
        self._pid = fork(lambda: _observe(items, self._part, slowest), errors=self._errors)

    def has_ended(self) -> bool:
        """Return whether no test of these runs any more."""
        if self._status is None:
            pid, status = os.waitpid(self._pid, os.WNOHANG)
            self._status = os.waitstatus_to_exitcode(status) if pid else None
        return self._status is not None

    def observed(self) -> Mapping[str, Observation]:
        """Return what was observed, and add it to the store.

        Raises:
            SystemExit: the fork has failed by itself.
        """
        if self._status == BROKEN:
            raise SystemExit(f"mutants: {self._errors.read_text()}")
        found = _read(self._part, 0)
        if self._part.exists():
            with self._store.open("ab") as file:
                file.write(self._part.read_bytes())
            self._part.unlink()
        return found


def _stored(store: Path) -> Mapping[str, Observation]:
    """Return what was stored of each test, unless a file of it has changed since."""
    digest = cache(_digest)

    def is_current(observation: Observation) -> bool:
        return all(digest(name) == content for name, content in observation.files.items())

    return {
        nodeid: observation
        for nodeid, observation in _read(store, 0).items()
        if is_current(observation)
    }


def _read(store: Path, start: int) -> Mapping[str, Observation]:
    found: dict[str, Observation] = {}
    if store.exists():
        with store.open("rb") as file, contextlib.suppress(EOFError, pickle.UnpicklingError):
            file.seek(start)
            while True:
                nodeid, observation = pickle.load(file)  # noqa: S301 - written by our own forks
                found[nodeid] = observation
    return found


def _digest(file: str) -> str:
    path = Path(file)
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else ""


def _observe(items: Sequence[pytest.Item], store: Path, slowest: float) -> int:
    digest = cache(_digest)
    with store.open("ab") as file:
        for item, following in zip(items, [*items[1:], None], strict=True):
            lines: set[Line] = set()
            started, of_cpu = time.monotonic(), time.process_time()
            with (
                limited(cpu=slowest, wall=60 * slowest, over=lambda: os._exit(_TOO_SLOW)),
                _recorded(lines),
            ):
                is_good = passes(item, following)
            executed = frozenset(lines.copy())  # threads that are left continue
            seconds, cpu = time.monotonic() - started, time.process_time() - of_cpu
            files = {
                name: digest(name) for name in {str(item.path), *(name for name, _ in executed)}
            }
            observation = Observation(
                files=files, seconds=seconds, cpu=cpu, is_good=is_good, lines=executed
            )
            pickle.dump((item.nodeid, observation), file)
            file.flush()
    return 0


@contextlib.contextmanager
def _recorded(into: set[Line]) -> Iterator[None]:
    """Collect the product's executed lines, in all threads that start inside of the context."""
    left: dict[CodeType, set[int]] = {}

    def called(frame: FrameType, _event: str, _argument: Any) -> Any:
        code = frame.f_code
        wanted = left.get(code)
        if wanted is None:
            is_watched = _WATCHED in code.co_filename
            wanted = left[code] = (
                {line for *_, line in code.co_lines() if line} if is_watched else set()
            )
        if not wanted:
            return None

        def passed(inner: FrameType, event: str, _argument: Any) -> Any:
            if event == "line" and inner.f_lineno in wanted:
                wanted.discard(inner.f_lineno)
                into.add((code.co_filename, inner.f_lineno))
            return passed

        return passed

    threading.settrace(called)
    sys.settrace(called)
    try:
        yield
    finally:
        sys.settrace(None)
        threading.settrace(None)
