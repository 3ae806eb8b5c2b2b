"""Validate: patterns for names."""

from balanced_source.connectors.kafka.pattern import PatternError, compiled
from balanced_source.errors import InvalidSpecError


def checked_pattern(pattern: str, *, field: str) -> str:
    """The pattern itself.

    Raises:
        InvalidSpecError: it is not understood; says what, and where in it.
    """
    try:
        compiled(pattern)
    except PatternError as error:
        raise InvalidSpecError(str(error), field=field) from error
    return pattern


def matches(pattern: str, name: str) -> bool:
    """Whether the whole name matches a pattern that was checked."""
    return compiled(pattern).matches(name)
