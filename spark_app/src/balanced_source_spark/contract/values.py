"""Reads values of options; keys are lower case."""

from collections.abc import Mapping

from balanced_source import durations
from balanced_source.errors import InvalidSpecError
from balanced_source.names import shown


def number(options: Mapping[str, str], key: str, default: int) -> int:
    """Return a whole number.

    Raises:
        InvalidSpecError: it is none.
    """
    value = options.get(key, str(default))
    try:
        return int(value)
    except ValueError as error:
        raise InvalidSpecError(f"a number, not {shown(value)}", field=f"options.{key}") from error


def positive(options: Mapping[str, str], key: str) -> int | None:
    """Return a whole number above 0; None if the option is not set.

    Raises:
        InvalidSpecError: it is none.
    """
    if key not in options:
        return None
    found = number(options, key, 0)
    if found < 1:
        raise InvalidSpecError(f"at least 1, not {found}", field=f"options.{key}")
    return found


def choice(options: Mapping[str, str], key: str, known: tuple[str, ...]) -> str:
    """Return one of the known values, in lower case; the first if the option is not set.

    Raises:
        InvalidSpecError: it is none of them.
    """
    value = options.get(key, known[0]).lower()
    if value not in known:
        raise InvalidSpecError(f"one of {', '.join(known)}, not {shown(value)}", field=f"options.{key}")
    return value


def seconds(duration: str, name: str) -> float:
    """Return the seconds of ``500ms``, ``5m``, ``1h30m``, or ``0``, as in the custom resource.

    Args:
        duration: the text.
        name: of the option, for messages.

    Raises:
        InvalidSpecError: it is no duration.
    """
    if not durations.is_duration(duration):
        raise InvalidSpecError(f"a duration such as 500ms, 5m or 1h30m, not {shown(duration)}", field=f"options.{name}")
    return durations.seconds(duration)
