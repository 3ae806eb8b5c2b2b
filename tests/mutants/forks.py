"""Forks of a collected pytest session, and tests that run in them."""

import contextlib
import ctypes
import os
import resource
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest
from _pytest.runner import runtestprotocol

BROKEN: Final = 99
"""Exit status of a fork whose work raised an exception of its own."""

MEMORY: Final = 3 * 2**30
"""Bytes of address space that a fork may add: a mutant that never stops collecting must not take
the machine."""

_PR_SET_PDEATHSIG: Final = 1


def fork(work: Callable[[], int], *, errors: Path) -> int:
    """Run `work` in a fork whose exit status is what it returns, and return its process id.

    Its output goes nowhere; an exception that escapes is written to `errors`.
    """
    pid = os.fork()
    if pid:
        return pid
    status = BROKEN
    try:
        os.setsid()
        _die_with_parent()
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (1, 2):
            os.dup2(nowhere, stream)
        _limit_memory()
        status = int(work() or 0)
    except BaseException:  # noqa: BLE001 - nothing may leave the fork
        errors.write_text(traceback.format_exc())
    finally:
        os._exit(status)


def wait(pid: int) -> int:
    """Wait for a fork and return its exit status, negative for a signal."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def passes(item: pytest.Item, following: pytest.Item | None) -> bool:
    """Run one test with its fixtures; `following` decides which fixtures stay."""
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    return not any(report.failed for report in runtestprotocol(item, log=False, nextitem=following))


@contextlib.contextmanager
def limited(*, cpu: float, wall: float, over: Callable[[], None]) -> Iterator[None]:
    """Call `over` after so many seconds of processor time, or of waiting, inside of the context."""
    clocks = ((signal.ITIMER_PROF, signal.SIGPROF, cpu), (signal.ITIMER_REAL, signal.SIGALRM, wall))
    for clock, signum, seconds in clocks:
        signal.signal(signum, lambda *_: over())
        signal.setitimer(clock, seconds)
    try:
        yield
    finally:
        for clock, _, _ in clocks:
            signal.setitimer(clock, 0)


def _die_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _limit_memory() -> None:
    if sys.platform != "linux":
        return
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(
        resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY, resource.RLIM_INFINITY)
    )
