"""What tasks say in their executor's log. That is seldom, so what writes it is loaded when it is first needed."""

from typing import Any


def tell(level: str, event: str, **fields: Any) -> None:
    """One structured line.

    Args:
        level: `info` or `warning`.
        event: what happened.
        fields: with which figures.
    """
    import structlog

    getattr(structlog.get_logger(__name__), level)(event, **fields)
