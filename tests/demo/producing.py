"""Produces in the background while a story is played."""

import contextlib
import threading
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def repeated(produce: Callable[[], object], *, every: float) -> Iterator[None]:
    """Call a function in a thread of its own, with so many seconds between two calls.

    Raises:
        ExceptionGroup: a call failed.
    """
    is_over, failures = threading.Event(), list[Exception]()

    def repeat() -> None:
        try:
            while not is_over.wait(every):
                produce()
        except Exception as error:  # noqa: BLE001 - raised below
            failures.append(error)

    thread = threading.Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
    if failures:
        raise ExceptionGroup("the producer failed", failures)
