"""Waiting with a deadline: the only way in which the testbed waits for anything."""

import time
from collections.abc import Callable
from typing import TypeVar

from testbed.errors import DeadlineError

T = TypeVar("T")


def wait_until(
    condition: Callable[[], T],
    timeout: float,
    what: str,
    *,
    interval: float = 0.05,
    ignoring: tuple[type[Exception], ...] = (),
) -> T:
    """Ask again and again until the answer is truthy, and return it.

    Args:
        condition: asked at least once, also with a timeout of zero.
        timeout: seconds.
        what: completes the sentence "waited … s for …" of the error.
        interval: seconds between two questions.
        ignoring: exceptions that count as "not yet"; the last one is told when time is up.

    Raises:
        DeadlineError: it was still falsy at the deadline; the message has the last answer or
        exception.
    """
    deadline = time.monotonic() + timeout
    while True:
        last: object
        try:
            answer = condition()
        except ignoring as error:
            last = error
        else:
            if answer:
                return answer
            last = answer
        if time.monotonic() >= deadline:
            raise DeadlineError(f"waited {timeout:g} s for {what}; last: {last!r}")
        time.sleep(interval)
