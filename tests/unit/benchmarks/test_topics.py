"""The records that a benchmark writes while others read."""

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from benchmarks.reading import topics


class FullAtFirst:
    """A producer whose queue has no room until it was served twice."""

    def __init__(self) -> None:
        self.polls = 0
        self.accepted: list[tuple[str, int]] = []

    def produce(self, topic: str, value: bytes, *, partition: int) -> None:
        if self.polls < 2:
            raise BufferError("Local: Queue full")
        self.accepted.append((topic, partition))

    def poll(self, _: float) -> None:
        self.polls += 1


def test_a_record_waits_for_room() -> None:
    producer: Any = FullAtFirst()
    topics._produce(producer, "orders", b"x", 3)
    assert producer.accepted == [("orders", 3)]


@pytest.mark.parametrize("ends", [True, False])
def test_a_producer_that_has_ended_makes_no_figure(
    monkeypatch: pytest.MonkeyPatch, *, ends: bool
) -> None:
    """A topic at rest would be measured instead."""
    code = "raise SystemExit(3)" if ends else "import time; time.sleep(60)"
    process = subprocess.Popen([sys.executable, "-c", code])  # noqa: S603 - this very line
    monkeypatch.setattr(topics.subprocess, "Popen", lambda *_, **__: process)
    kafka: Any = SimpleNamespace(bootstrap="127.0.0.1:1")

    def measured() -> None:
        with topics.drip(kafka, "orders", partitions=1, rate=10):
            if ends:
                process.wait()

    if ends:
        with pytest.raises(RuntimeError, match="the producer has ended with exit code 3"):
            measured()
    else:
        measured()
