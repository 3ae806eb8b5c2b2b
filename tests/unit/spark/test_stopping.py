"""A query that another program has started ends in order."""

import os
import signal
import subprocess
import sys
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from balanced_source_spark import stopping
from balanced_source_spark.stopping import Stopper, await_batch
from testbed.waiting import wait_until


class FakeQuery:
    """A query whose micro-batch the test ends."""

    def __init__(self, *, is_active: bool = True) -> None:
        self.is_active, self.batch = is_active, 4
        self.stopped = threading.Event()

    @property
    def status(self) -> dict[str, Any]:
        return {"isTriggerActive": self.is_active}

    @property
    def lastProgress(self) -> Any:  # noqa: N802 - Spark's name
        return {"batchId": self.batch}

    def stop(self) -> None:
        self.stopped.set()


def test_a_query_is_stopped_after_its_micro_batch() -> None:
    stopper, query = Stopper(), FakeQuery()
    stopper.query_starts()
    stopper.follow(query)

    stopper.stop()

    assert not query.stopped.wait(0.3)
    query.batch += 1
    assert query.stopped.wait(10)


def test_an_idle_query_is_stopped_at_once() -> None:
    stopper, query = Stopper(), FakeQuery(is_active=False)
    stopper.follow(query)
    stopper.stop()

    assert query.stopped.wait(10)


def test_a_request_while_the_query_starts_is_kept() -> None:
    stopper, query = Stopper(), FakeQuery(is_active=False)
    stopper.query_starts()
    stopper.stop()
    stopper.follow(query)

    assert query.stopped.wait(10)


def test_a_micro_batch_that_takes_too_long_is_not_waited_for() -> None:
    await_batch(FakeQuery(), 0.05)


PROGRAM = """
import sys, time
from balanced_source_spark.stopping import Stopper
stopper = Stopper()
stopper.on_sigterm()
stopper.on_end_of(sys.stdin.fileno())
print("ready", flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("end", [lambda p: p.terminate(), lambda p: p.stdin.close()])
def test_before_there_is_a_query_the_program_ends_at_once(end: Any) -> None:
    with subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"

        end(process)

        assert process.wait(20) == 0


@pytest.fixture(name="codes")
def fixture_codes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Exit codes with which this process would have ended."""
    codes: list[int] = []
    monkeypatch.setattr(os, "_exit", codes.append)
    return codes


def test_sigterm_ends_a_program_that_has_begun_nothing(
    codes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    handlers: dict[int, Any] = {}
    monkeypatch.setattr(signal, "signal", handlers.__setitem__)
    Stopper().on_sigterm()

    handlers[signal.SIGTERM](signal.SIGTERM, None)

    assert codes == [0]


def test_a_query_that_starts_is_not_left_with_its_claim(codes: list[int]) -> None:
    stopper = Stopper()
    stopper.query_starts()

    stopper.stop()

    assert codes == []


def test_an_orphan_ends_although_its_query_does_not(
    codes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stopping, "ORPHAN_PATIENCE", 0.1)
    stopper, query = Stopper(), FakeQuery()
    stopper.follow(query)
    reading, writing = os.pipe()
    stopper.on_end_of(reading)

    os.close(writing)

    wait_until(lambda: codes == [1], 10, "the end", interval=0.01)
    assert query.stopped.wait(10)
    os.close(reading)


def test_what_the_parent_writes_is_not_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    written = [b"a", b"b", b""]
    system = SimpleNamespace(read=lambda *_: written.pop(0), _exit=lambda _: None)
    monkeypatch.setattr(stopping, "os", system)
    stopper, query = Stopper(), FakeQuery(is_active=False)
    stopper.follow(query)

    stopper.on_end_of(0)

    assert query.stopped.wait(10)
    assert written == []


def test_a_micro_batch_is_checked_now_and_then_until_its_time_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not all the time: the driver has other work, too."""
    waited: list[float] = []
    looks = iter(range(200))

    def monotonic() -> float:
        assert next(looks, None) is not None, "it is checked without a pause"
        return sum(waited)

    times = SimpleNamespace(monotonic=monotonic, sleep=waited.append)
    monkeypatch.setattr(stopping, "time", times)

    await_batch(FakeQuery(), 5.0)

    assert sum(waited) == pytest.approx(5.0, abs=0.11)
    assert len(waited) <= 51
