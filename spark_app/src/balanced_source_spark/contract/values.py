"""Reads values of options.

Keys of the mappings are lower case; the names in calls are the documented ones.
"""

from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from balanced_source import durations
from balanced_source.names import shown
from balanced_source_adapters.suggestions import nearest
from balanced_source_spark.contract.option_table import rejected


def number(
    options: Mapping[str, str],
    name: str,
    default: int,
    *,
    least: int = 0,
    most: int | None = None,
) -> int:
    """Return a whole number.

    Args:
        options: of the query.
        name: of the option.
        default: the number if the option is not set.
        least: the smallest number that makes sense.
        most: the largest one; None: any.

    Raises:
        InvalidSpecError: it is none, too small or too large.
    """
    value = options.get(name.lower(), str(default))
    try:
        found = int(value)
    except ValueError as error:
        raise rejected(name, f"expected a whole number, not {shown(value)}") from error
    if found < least:
        raise rejected(name, f"must be at least {least}, not {found}")
    if most is not None and found > most:
        raise rejected(name, f"must be at most {most}, not {found}")
    return found


def positive(options: Mapping[str, str], name: str) -> int | None:
    """Return a whole number above 0; None if the option is not set.

    Raises:
        InvalidSpecError: it is none.
    """
    return number(options, name, 1, least=1) if name.lower() in options else None


def flag(options: Mapping[str, str], name: str, *, default: bool) -> bool:
    """Return whether the option is ``true``.

    Raises:
        InvalidSpecError: it is neither ``true`` nor ``false``.
    """
    value = options.get(name.lower(), str(default)).strip().lower()
    if value not in ("true", "false"):
        raise rejected(name, f"expected true or false, not {shown(options[name.lower()])}")
    return value == "true"


def choice(options: Mapping[str, str], name: str, known: tuple[str, ...]) -> str:
    """Return one of the known values, in lower case; the first if the option is not set.

    Raises:
        InvalidSpecError: it is none of them.
    """
    value = options.get(name.lower(), known[0]).lower()
    if value not in known:
        raise rejected(name, one_of(value, known))
    return value


def one_of(value: str, known: Iterable[str]) -> str:
    """Return the message about a value that is none of those that are known.

    It suggests the nearest one.
    """
    names = list(known)
    near = nearest(value, names)
    hint = f"; did you mean {near}?" if near else ""
    return f"expected one of {', '.join(names)}, not {shown(value)}{hint}"


def seconds(duration: str, name: str) -> float:
    """Return the seconds of ``500ms``, ``5m``, ``1h30m``, or ``0``, as in the custom resource.

    Args:
        duration: the text.
        name: of the option, for messages.

    Raises:
        InvalidSpecError: it is no duration.
    """
    if not durations.is_duration(duration):
        raise rejected(
            name, f"expected a duration such as 500ms, 5m or 1h30m, not {shown(duration)}"
        )
    return durations.seconds(duration)


def is_url(text: str) -> bool:
    """Return whether a text is an http or https URL with a host."""
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname and parts.port != 0)
    except ValueError:  # a port that is no number, or half of an IPv6 address
        return False
