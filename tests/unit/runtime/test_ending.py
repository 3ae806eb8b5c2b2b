"""The process ends when its Lease was not renewed, whatever else happens."""

import signal
import subprocess
import sys
import threading
import time

import pytest

from balanced_source_operator.ending import LeaseGuard, end_within

PROGRAM = """
import signal, time
from balanced_source_operator import ending
ending.STOP_SECONDS = 0.2
ending.on_stop_signals(lambda: print("stopping", flush=True))
signal.signal(signal.SIGTERM, lambda *_: print("somebody else's handler", flush=True))
print("ready", flush=True)
while True: time.sleep(60)
"""


def test_a_lease_that_is_not_renewed_ends_the_process() -> None:
    ended = threading.Event()
    guard = LeaseGuard(0.05, end=ended.set)
    guard.renewed(time.monotonic())

    assert ended.wait(20)


def test_a_renewal_counts_from_its_request_and_not_from_its_answer() -> None:
    ended = threading.Event()
    guard = LeaseGuard(1000.0, end=ended.set)
    guard.renewed(time.monotonic() - 1001.0)

    assert ended.wait(20)


@pytest.mark.parametrize("leave", ["renew", "close"])
def test_a_lease_that_is_renewed_or_given_up_ends_nothing(leave: str) -> None:
    ended, now = threading.Event(), [0.0]
    guard = LeaseGuard(10.0, end=ended.set, clock=lambda: now[0])
    guard.renewed(0.0)
    for now[0] in (9.0, 18.0, 27.0):
        guard.renewed(now[0])
    if leave == "close":
        guard.close()
        now[0] = 1000.0
        guard.renewed(0.0)

    assert not ended.is_set()
    guard.close()


def test_a_process_that_does_not_end_is_killed() -> None:
    ended = threading.Event()
    end_within(0.01, end=ended.set)

    assert ended.wait(20)


def test_a_signal_ends_a_busy_process_although_its_handlers_were_replaced() -> None:
    with subprocess.Popen(  # noqa: S603 - ours
        [sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        child.send_signal(signal.SIGTERM)
        output, _ = child.communicate(timeout=20)

    assert child.returncode == 1
    assert "stopping" in output
    assert "somebody else" not in output
