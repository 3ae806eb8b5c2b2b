"""CPU and memory of this process and everything that it started."""

import os
import threading
from types import TracebackType
from typing import Final, NamedTuple, Self

import psutil

_INTERVAL: Final = 0.2
_MEGA: Final = 1 << 20


class _Spent(NamedTuple):
    """Processor seconds of a process: before it was watched, and at the last look."""

    begin: float
    end: float = 0.0
    is_java: bool = False


class Cost:
    """A context manager around what is measured.

    Args:
        roots: processes that are counted with everything that they started; this one if there are
            none.
        ignored: processes that are not, nor what they started: brokers, producers, rivals that wait
            for their turn.

    Attributes:
        cpu: seconds of user and system time, over all processes. Of one that ends, what it spent up
            to the last look, less than a quarter of a second before.
        jvm_cpu: the part of JVMs; the rest is Python's.
        python_mb: largest sum of the memory of Python workers and planning processes, this one left
            out. A page that forked processes share counts once (the kernel's "proportional set
            size").
        jvm_mb: largest sum of resident memory of JVMs.
    """

    def __init__(
        self, *, roots: frozenset[int] = frozenset(), ignored: frozenset[int] = frozenset()
    ) -> None:
        self._roots = [psutil.Process(pid) for pid in roots or (os.getpid(),)]
        self._ignored = ignored | {child.pid for pid in ignored for child in _below(pid)}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._spent: dict[tuple[int, float], _Spent] = {}
        self._is_first = True
        self.cpu = 0.0
        self.jvm_cpu = 0.0
        self.python_mb = 0.0
        self.jvm_mb = 0.0

    def __enter__(self) -> Self:
        self._look()
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()
        self._look()
        self.cpu = sum(one.end - one.begin for one in self._spent.values())
        self.jvm_cpu = sum(one.end - one.begin for one in self._spent.values() if one.is_java)

    def _processes(self) -> list[psutil.Process]:
        return [
            *self._roots,
            *(
                child
                for root in self._roots
                for child in _below(root.pid)
                if child.pid not in self._ignored
            ),
        ]

    def _look(self) -> None:
        """Note the times of all processes that live now."""
        for process in self._processes():
            try:
                key, times = (process.pid, process.create_time()), process.cpu_times()
                is_java = process.name() == "java"
            except psutil.Error:
                continue
            spent = times.user + times.system
            # What it spent before is not ours; one that is new has spent nothing before.
            begin = spent if self._is_first else 0.0
            self._spent[key] = _Spent(self._spent.get(key, _Spent(begin)).begin, spent, is_java)
        self._is_first = False

    def _watch(self) -> None:
        while not self._stop.wait(_INTERVAL):
            self._look()
            python = jvm = 0.0
            for process in self._processes():
                try:
                    name = process.name()
                    if name == "java":
                        jvm += process.memory_info().rss / _MEGA
                    # what a JVM is about to start is its image still, under the name of a thread
                    elif name.startswith("python") and process.pid != os.getpid():
                        python += process.memory_full_info().pss / _MEGA
                except psutil.Error:
                    continue
            self.python_mb, self.jvm_mb = max(self.python_mb, python), max(self.jvm_mb, jvm)


def _below(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.Error:  # it has ended
        return []
