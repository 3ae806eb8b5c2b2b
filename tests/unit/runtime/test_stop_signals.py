"""What a signal to stop and an end at once do, step by step and in this process."""

import os
import signal
import sys
import threading
import types
from collections.abc import Callable
from typing import Any

import pytest

from balanced_source_operator import ending


def test_an_end_at_once_writes_what_was_printed_and_ends_with_1(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    steps: list[object] = []

    def stream(name: str) -> types.SimpleNamespace:
        return types.SimpleNamespace(flush=lambda: steps.append(name))

    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", stream("stdout"))
        patch.setattr(sys, "stderr", stream("stderr"))
        patch.setattr(os, "_exit", steps.append)
        ending.end_now()

    assert steps == ["stdout", "stderr", 1]


class Signals:
    """Stands in for the module `signal`: the signal that is waited for has come already."""

    SIG_BLOCK = signal.SIG_BLOCK
    Signals = signal.Signals

    def __init__(self, steps: list[object]) -> None:
        self._steps = steps

    def pthread_sigmask(self, how: int, signals: frozenset[int]) -> None:
        self._steps.append(("mask", how, signals))

    def sigwait(self, signals: frozenset[int]) -> int:
        self._steps.append(("wait", signals))
        return signal.SIGTERM


def test_signals_are_blocked_and_taken_by_a_thread_which_sets_a_bound_and_then_stops(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    steps: list[object] = []
    runs: list[Callable[[], None]] = []

    def thread(target: Callable[[], None], name: str, *, daemon: bool) -> Any:
        steps.append((name, daemon))
        return types.SimpleNamespace(start=lambda: runs.append(target))

    stand_in = types.SimpleNamespace(Thread=thread, Timer=threading.Timer)
    monkeypatch.setattr(ending, "signal", Signals(steps))
    monkeypatch.setattr(ending, "threading", stand_in)
    log = types.SimpleNamespace(info=lambda event, *, signal: steps.append((event, signal)))
    monkeypatch.setattr(ending, "log", log)
    monkeypatch.setattr(ending, "end_within", lambda seconds: steps.append(("within", seconds)))
    both = {signal.SIGTERM, signal.SIGINT}

    ending.on_stop_signals(lambda: steps.append("stop"))
    assert steps == [("mask", signal.SIG_BLOCK, both), ("signals", True)]

    steps.clear()
    runs.pop()()
    assert steps == [
        ("wait", both),
        ("told to stop", "SIGTERM"),
        ("within", ending.STOP_SECONDS),
        "stop",
    ]
