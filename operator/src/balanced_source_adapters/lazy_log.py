"""A structured logger that loads structlog after its first line, in a thread of its own.

structlog loads `asyncio`, and `rich` where that is installed: a sixth of what a query would wait
for until its first micro-batch is planned. So a process that has not loaded it yet keeps its lines
for a moment, and logs them in their order when it has. Warnings and errors are logged at once, by
who calls: Spark ends a worker of Python without waiting for its threads.
"""

import sys
import threading
from collections import deque
from dataclasses import dataclass
from typing import Any, Final

LATER: Final = 1.0
"""Seconds for which the lines of a process that starts are kept: as a rule it has planned then."""

URGENT: Final = frozenset({"warning", "error"})
"""Levels of lines that are not kept, and that bring what is kept with them."""


@dataclass(frozen=True, slots=True)
class _Line:
    """One line that is to be logged."""

    logger: str
    level: str
    event: str
    fields: dict[str, Any]

    def log(self) -> None:
        """Log it with structlog, which this loads."""
        import structlog

        getattr(structlog.get_logger(self.logger), self.level)(self.event, **self.fields)


class _Lines:
    """The lines of a process, and the threads that log those that came before structlog."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._in_order = threading.RLock()
        self._waiting: deque[_Line] = deque()
        self._is_keeping = False

    def log(self, line: _Line) -> None:
        """Log a line, after all that came before."""
        with self._lock:
            is_first = not self._is_keeping
            is_kept = not is_first or "structlog" not in sys.modules
            if is_kept:
                self._is_keeping = True
                self._waiting.append(line)
        if not is_kept:
            line.log()
        elif line.level in URGENT:
            self._log_waiting(0.0)
        elif is_first:
            self._log_soon()

    def _log_soon(self) -> None:
        """Log what waits from another thread; here if the interpreter is ending."""
        try:
            if threading.main_thread().is_alive():
                # Not a daemon: a process that ends logs its last lines first.
                threading.Thread(target=self._log_waiting, args=(LATER,), name="bsrc-log").start()
                return
        except RuntimeError:  # no more threads
            pass
        self._log_waiting(0.0)

    def _log_waiting(self, delay: float) -> None:
        if delay:
            threading.main_thread().join(delay)  # sooner if the process ends
        with self._in_order:
            while (line := self._next()) is not None:
                line.log()

    def _next(self) -> _Line | None:
        with self._lock:
            self._is_keeping = bool(self._waiting)
            return self._waiting.popleft() if self._is_keeping else None


_LINES = _Lines()
"""Of this process."""


class LazyLogger:
    """The logger of a module.

    Args:
        name: of the module.
    """

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def debug(self, event: str, /, **fields: Any) -> None:
        """Log what only developers look for."""
        _LINES.log(_Line(self._name, "debug", event, fields))

    def info(self, event: str, /, **fields: Any) -> None:
        """Log what happened."""
        _LINES.log(_Line(self._name, "info", event, fields))

    def warning(self, event: str, /, **fields: Any) -> None:
        """Log what someone should look at."""
        _LINES.log(_Line(self._name, "warning", event, fields))

    def error(self, event: str, /, **fields: Any) -> None:
        """Log what does not work."""
        _LINES.log(_Line(self._name, "error", event, fields))


def get_logger(name: str) -> LazyLogger:
    """Return the logger of a module, without loading structlog."""
    return LazyLogger(name)
