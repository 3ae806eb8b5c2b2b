"""What a worker process does about memory, beside `balanced_source_adapters.heap`.

Spark collects garbage after each task, and the collector then looks at every object: at those of
all modules too, which stay. That was half of what a small task took. So the objects that are in use
at the end of the first task are set aside, and free pages are given back between tasks.

Tasks import this, so it imports little.
"""

import gc
import threading
import time
from collections.abc import Callable
from typing import Final

from balanced_source_adapters.heap import EVERY, trim


class WorkerMemory:
    """Takes care of it once in a while. Thread-safe.

    Args:
        settle: sets aside what stays, for the collector.
        trim: gives back what it can.
        every: seconds between two times.
        clock: seconds, monotonic.
    """

    def __init__(
        self,
        settle: Callable[[], object],
        trim: Callable[[], object],
        *,
        every: float = EVERY,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settle = settle
        self._trim = trim
        self._every = every
        self._clock = clock
        self._lock = threading.Lock()
        self._due: float | None = None

    def note_task(self) -> None:
        """A task has ended. The first one has loaded modules, and has freed little."""
        now = self._clock()
        with self._lock:
            is_first = self._due is None
            if self._due is not None and now < self._due:
                return
            self._due = now + self._every
        self._settle()
        if not is_first:
            self._trim()


def settle() -> None:
    """Collect all garbage, and spare the collector what is left until this is called again."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()


worker_memory: Final = WorkerMemory(settle, trim)
"""Of this process."""
