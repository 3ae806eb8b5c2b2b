"""A structured logger that loads structlog with its first line.

A query waits for the imports of its planning process, and structlog is a sixth of them: it loads
`asyncio`, and `rich` where that is installed.
"""

from typing import Any


class LazyLogger:
    """A logger of structlog that is made when it is first used.

    Args:
        name: of the module that logs.
    """

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, method: str) -> Any:
        """Return a method of structlog's logger, such as `info`."""
        import structlog

        return getattr(structlog.get_logger(self._name), method)


def get_logger(name: str) -> LazyLogger:
    """Return the logger of a module, without loading structlog."""
    return LazyLogger(name)
