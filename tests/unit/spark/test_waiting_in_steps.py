"""A wait for an assignment looks for problems again and again."""

from types import SimpleNamespace
from typing import Any

import pytest

from balanced_source_spark import host_runtime
from balanced_source_spark.host_runtime import RETRY, HostRuntime


class Clock:
    """Passes while someone waits for a lock."""

    def __init__(self) -> None:
        self.now = 0.0
        self.waits: list[float] = []

    def __enter__(self) -> None:
        """Nothing else runs."""

    def __exit__(self, *_: object) -> None:
        """Nothing was locked."""

    def wait_for(self, _: Any, timeout: float) -> None:
        self.waits.append(timeout)
        self.now += timeout


@pytest.mark.parametrize(
    ("timeout", "waits"),
    [(RETRY / 2, [RETRY / 2]), (2.5 * RETRY, [RETRY, RETRY, RETRY / 2])],
)
def test_a_long_wait_is_made_of_short_ones(
    monkeypatch: pytest.MonkeyPatch, timeout: float, waits: list[float]
) -> None:
    clock, checks = Clock(), list[float]()
    monkeypatch.setattr(host_runtime, "time", SimpleNamespace(monotonic=lambda: clock.now))
    runtime: Any = SimpleNamespace(
        _lock=clock,
        _is_assigned=False,
        _failure=None,
        _check_waiting=lambda: checks.append(clock.now),
    )

    assert not HostRuntime.wait_until_assigned(runtime, timeout=timeout)
    assert clock.waits == pytest.approx(waits)
    assert len(checks) == len(waits)
