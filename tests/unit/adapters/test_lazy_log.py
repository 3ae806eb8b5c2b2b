"""Lines of a process that has not loaded structlog yet: none is lost, and none comes early."""

import subprocess
import sys

import pytest
from structlog.testing import capture_logs

from balanced_source_adapters.lazy_log import get_logger

pytestmark = pytest.mark.unit

LOGGER = "from balanced_source_adapters.lazy_log import get_logger; log = get_logger('p')"


def logged_by(*statements: str) -> str:
    """Return what a fresh interpreter prints until it has ended."""
    code = "; ".join(["import sys", LOGGER, *statements])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    return done.stdout


def test_the_first_line_does_not_wait_for_structlog() -> None:
    blocked = (
        "import builtins, threading; go = threading.Event(); real = builtins.__import__;"
        " builtins.__import__ = lambda name, *a, **k:"
        " (name != 'structlog' or go.wait(30)) and real(name, *a, **k);"
        " log.info('a line'); print('went on'); go.set()"
    )
    assert [line.split()[-1] for line in logged_by(blocked).splitlines()] == ["on", "line"]


def test_a_process_that_starts_is_not_disturbed_by_a_line_and_logs_it_when_it_ends() -> None:
    later = "import balanced_source_adapters.lazy_log as l; l.LATER = 3600.0"

    printed = logged_by(later, "log.info('a line')", "print('structlog' in sys.modules)")

    assert [line.split()[-1] for line in printed.splitlines()] == ["False", "line"]


def test_a_warning_does_not_wait_and_comes_after_what_was_there_before() -> None:
    later = "import balanced_source_adapters.lazy_log as l; l.LATER = 3600.0"

    printed = logged_by(
        later,
        "log.info('first')",
        "log.warning('second')",
        "print('third')",
    )

    assert [line.split()[-1] for line in printed.splitlines()] == ["first", "second", "third"]


def test_lines_are_logged_in_their_order_and_before_the_process_ends() -> None:
    lines = [*range(200)]

    printed = logged_by(f"[log.info('line', number=number) for number in {lines}]")

    assert [int(line.rpartition("=")[2]) for line in printed.splitlines()] == lines


@pytest.mark.parametrize("end", ["sys.exit(0)", "raise SystemExit(0)"])
def test_a_process_that_is_told_to_end_logs_its_last_lines(end: str) -> None:
    assert "the last one" in logged_by("log.error('the last one')", end)


@pytest.mark.parametrize("level", ["warning", "error"])
def test_an_urgent_line_is_there_when_the_process_ends_without_its_threads(level: str) -> None:
    """Spark ends a worker of Python so, right after a task has failed."""
    ended = "sys.stdout.flush(); import os; os._exit(0)"
    assert logged_by(f"log.{level}('why it ends')", ended).split()[-3:] == ["why", "it", "ends"]


def test_a_line_of_an_interpreter_that_is_ending_is_logged() -> None:
    late = "import atexit; atexit.register(lambda: log.warning('late', key=1))"
    assert "late" in logged_by(late)


@pytest.mark.parametrize("level", ["debug", "info", "warning", "error"])
def test_where_structlog_is_loaded_a_line_is_logged_at_once(level: str) -> None:
    with capture_logs() as lines:
        getattr(get_logger("m"), level)("an event", key="value")

    assert lines == [{"event": "an event", "key": "value", "log_level": level}]


def test_threads_may_log_while_structlog_is_loading() -> None:
    printed = logged_by(
        "import threading",
        "ts = [threading.Thread(target=log.info, args=(f'line {n}',)) for n in range(20)]",
        "[t.start() for t in ts]",
    )
    assert sorted(int(line.split()[-1]) for line in printed.splitlines()) == [*range(20)]
