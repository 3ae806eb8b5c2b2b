"""Waits for what another thread does."""

import time
from collections.abc import Callable

INTERVAL = 0.001
"""Seconds between two looks."""


def wait_until(condition: Callable[[], bool], timeout: float, what: str) -> None:
    """Return as soon as a condition holds.

    Raises:
        AssertionError: it did not hold within `timeout` seconds; names `what` was waited for.
    """
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, f"waited {timeout:.0f} s in vain for {what}"
        time.sleep(INTERVAL)
