"""Spark ends the planning process by SIGTERM: the reader is stopped all the same."""

import signal
import subprocess
import sys
import threading

import pytest

from balanced_source_spark.ending import end_in_order

PROCESS = """
import signal
from balanced_source_spark.ending import end_in_order
{before}
end_in_order()
try:
    print("ready", flush=True)
    while True:
        signal.pause()
finally:
    print("going", flush=True)
    {during}
    print("stopped", flush=True)
"""


def end(*, before: str = "", during: str = "", signals: int = 2) -> tuple[int, list[str]]:
    """Start a process and end it as Spark does, by two signals.

    Return its exit status and what it printed.
    """
    code = PROCESS.format(before=before, during=during)
    with subprocess.Popen(  # noqa: S603
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline().strip()]
        for _ in range(signals):
            process.send_signal(signal.SIGTERM)
        lines += process.stdout.read().split()
    return process.returncode, lines


def test_the_reader_is_stopped() -> None:
    assert end() == (128 + signal.SIGTERM, ["ready", "going", "stopped"])


def test_a_process_that_does_not_get_to_its_end_is_killed() -> None:
    hangs = "signal.alarm(1), signal.pause()"
    assert end(during=hangs) == (-signal.SIGALRM, ["ready", "going"])


def test_a_handler_of_someone_else_stays() -> None:
    other = "signal.signal(signal.SIGTERM, lambda *_: exit(7))"
    assert end(before=other, signals=1) == (7, ["ready", "going", "stopped"])


def test_only_the_main_thread_can_set_a_handler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signal, "signal", lambda *_: pytest.fail("not the main thread"))
    thread = threading.Thread(target=end_in_order)
    thread.start()
    thread.join()
