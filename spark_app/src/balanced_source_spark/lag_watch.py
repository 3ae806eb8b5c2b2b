"""Looks again for new records while a micro-batch runs, or while a query waits for its trigger.

Spark calls the planner between two micro-batches only. One that takes ten minutes would leave
people and autoscalers with a lag that is ten minutes old, while records pile up.
"""

import threading
import time
from collections.abc import Callable
from typing import Final

from balanced_source_adapters.lazy_log import get_logger

EVERY: Final = 10.0
"""Seconds after the planner's newest look, and between two looks of our own.

As long as between two heartbeats: a lag that is looked for more often would not be reported.
"""

log = get_logger(__name__)


class LagWatch:
    """A thread that calls `look` whenever the planner has not looked for a while.

    Args:
        look: called by the thread; what it raises is logged, and ends nothing.
        turn: held by the planner while it plans, and by the thread while it looks.
        every: see `EVERY`.
    """

    def __init__(
        self, look: Callable[[], None], *, turn: threading.Lock, every: float = EVERY
    ) -> None:
        self._look = look
        self._turn = turn
        self._every = every
        self._looked_at = time.monotonic()
        self._closed = threading.Event()
        threading.Thread(target=self._keep_looking, name="bsrc-lag", daemon=True).start()

    def planner_looked(self) -> None:
        """Wait the whole time again: what people see is as new as this call."""
        self._looked_at = time.monotonic()

    def close(self) -> None:
        """End the thread, which may finish the look that it has begun."""
        self._closed.set()

    def _keep_looking(self) -> None:
        while not self._closed.wait(max(0.0, self._left())):
            if self._left() > 0:
                continue
            # A planner that has its turn looks by itself, and must not wait for us.
            if self._turn.acquire(blocking=False):
                try:
                    self._look()
                except Exception as error:  # noqa: BLE001
                    # The planner meets the same at its next look, and it is who ends the query.
                    log.debug("cannot look for new records now", error=repr(error))
                finally:
                    self._turn.release()
            self._looked_at = time.monotonic()

    def _left(self) -> float:
        return self._looked_at + self._every - time.monotonic()
