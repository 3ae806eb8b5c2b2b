"""A structured logger that loads structlog with its first line, in a thread of its own.

structlog loads `asyncio`, and `rich` where that is installed: a sixth of what a query would wait
for until its planning process is ready. So a process that has not loaded it yet keeps its lines
until a thread has, and logs them from there in their order. Their time is a moment late then.
"""

import sys
import threading
from collections import deque
from dataclasses import dataclass
from typing import Any


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
    """The lines of a process, and the thread that logs those that came before structlog."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: deque[_Line] = deque()
        self._is_loading = False

    def log(self, line: _Line) -> None:
        """Log a line, after all that came before."""
        with self._lock:
            if self._is_loading or ("structlog" not in sys.modules and self._starts()):
                self._is_loading = True
                self._waiting.append(line)
                return
        line.log()

    def _starts(self) -> bool:
        """Start the thread; it waits for the lock, and so for the first line."""
        if not threading.main_thread().is_alive():
            return False  # threads that start now are not waited for
        # Not a daemon: a process that ends logs its last lines first.
        thread = threading.Thread(target=self._log_waiting, name="balanced-source-log")
        try:
            thread.start()
        except RuntimeError:  # the interpreter is ending
            return False
        return True

    def _log_waiting(self) -> None:
        while (line := self._next()) is not None:
            line.log()

    def _next(self) -> _Line | None:
        with self._lock:
            self._is_loading = bool(self._waiting)
            return self._waiting.popleft() if self._is_loading else None


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
