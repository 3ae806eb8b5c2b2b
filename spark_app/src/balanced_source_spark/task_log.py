"""What tasks say in their executor's log.

That is seldom, so what writes it is loaded when it is first needed.
"""

from typing import Any, Final

from balanced_source_adapters.lazy_log import get_logger

TELL_EVERY: Final = 60.0
"""Seconds between two lines about the same reader, or its consumer; there is none in its first
minute."""


def tell(level: str, event: str, **fields: Any) -> None:
    """One structured line.

    Args:
        level: `info` or `warning`.
        event: what happened.
        fields: with which figures.
    """
    getattr(get_logger(__name__), level)(event, **fields)
