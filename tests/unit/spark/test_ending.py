"""Spark ends the planning process by SIGTERM: the reader is stopped all the same."""

import signal
import subprocess
import sys
import threading
from typing import Any

import pytest

from balanced_source_spark.ending import GRACE, end_in_order

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


@pytest.fixture(name="handlers")
def fixture_handlers(monkeypatch: pytest.MonkeyPatch) -> dict[int, Any]:
    """Return the handlers of this process, none of which is really set."""
    handlers: dict[int, Any] = {signal.SIGTERM: signal.SIG_DFL}
    monkeypatch.setattr(signal, "getsignal", handlers.__getitem__)
    monkeypatch.setattr(signal, "signal", handlers.__setitem__)
    return handlers


def test_the_first_signal_ends_the_process_and_the_second_one_is_ignored(
    handlers: dict[int, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    alarms: list[int] = []
    monkeypatch.setattr(signal, "alarm", alarms.append)

    end_in_order()
    with pytest.raises(SystemExit) as caught:
        handlers[signal.SIGTERM](signal.SIGTERM, None)

    assert caught.value.code == 128 + signal.SIGTERM
    assert handlers == {signal.SIGTERM: signal.SIG_IGN}
    assert alarms == [GRACE], "a finally block that hangs would keep the claim"


def test_the_handler_of_someone_else_is_not_replaced(handlers: dict[int, Any]) -> None:
    handlers[signal.SIGTERM] = other = object()

    end_in_order()

    assert handlers == {signal.SIGTERM: other}
