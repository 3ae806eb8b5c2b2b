"""Names that reach a URL, a path or a command: their patterns, and the check before they are used.

The custom resource carries the same patterns, so the API server refuses such a name first. They are
checked again where a name is used: an object may be older than its CRD, and local mode has no API
server.
"""

import re
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from balanced_source.errors import InvalidSpecError

ThingT = TypeVar("ThingT")

LABEL: Final = r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$"
"""A DNS label (RFC 1123): names of namespaces, clusters and hosts; at most 63 characters."""

OBJECT: Final = r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$"
"""A DNS subdomain (RFC 1123): names of Kubernetes objects; at most 253 characters.

Never holds `..` or `/`.
"""

KEY: Final = r"^([A-Za-z0-9_-]|\.[A-Za-z0-9_-])[A-Za-z0-9._-]*$"
"""A key of a ConfigMap or Secret, which is a file name when it is mounted: never `.`, `..` or one
with a slash."""

MAX_LABEL: Final = 63
MAX_OBJECT: Final = 253

_SHOWN: Final = 80
_VALUE: Final = 100
_LINE: Final = 300
_LABEL: Final = re.compile(LABEL[:-1] + r"\Z")
_OBJECT: Final = re.compile(OBJECT[:-1] + r"\Z")


def shown(text: str) -> str:
    """Returns the text as a message may quote it: short, and without control characters."""
    return repr(text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…")


def first_of(
    things: Sequence[ThingT],
    limit: int,
    *,
    name: Callable[[ThingT], str] = str,
    separator: str = ", ",
) -> str:
    """Returns the names of the first `limit` things, as a message has them, and how many follow."""
    more = f" and {len(things) - limit} more" if len(things) > limit else ""
    return separator.join(map(name, things[:limit])) + more


def counted(number: int, noun: str) -> str:
    """Returns a number with its noun, which ends with "s" unless the number is one."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def separated(text: str) -> tuple[str, ...]:
    """Returns the names of a list with commas; empty ones are left out."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def split_name(split_id: tuple[str | int, ...]) -> str:
    """Returns a split for people, such as `main/orders/4`."""
    return "/".join(map(str, split_id))


def shown_value(value: object) -> str:
    """Returns a value as a message may quote it: as a program would write it, and short."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - code of others, which must not break what explains it
        text = f"<{type(value).__name__}>"
    return text if len(text) <= _VALUE else text[: _VALUE - 1] + "…"


def is_unicode(text: str) -> bool:
    """Returns whether a text can be written in UTF-8: it holds no half of a surrogate pair."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def as_unicode(text: str) -> str:
    """Returns the text with a question mark for what cannot be written in UTF-8.

    Names of files may hold such.
    """
    return text if is_unicode(text) else text.encode(errors="replace").decode()


def capitalised(text: str) -> str:
    """Returns the text as a sentence begins; its other words keep their capitals."""
    return text[:1].upper() + text[1:]


def one_line(text: str) -> str:
    """Returns a text of another program on one line, bounded and without control characters."""
    joined = " ".join(text.split())
    line = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in joined)
    return line if len(line) <= _LINE else line[: _LINE - 1] + "…"


def reason_of(error: OSError | ValueError) -> str:
    """Returns why a file cannot be read, without its name."""
    match error:
        case OSError(strerror=str(reason)):
            return reason[:1].lower() + reason[1:]
        case UnicodeError():
            return "it is not UTF-8 text"
        case _:
            return one_line(str(error))


def checked_label(name: str, *, field: str) -> str:
    """Returns the name if it is a DNS label.

    Raises:
        InvalidSpecError: it is not.
    """
    if len(name) <= MAX_LABEL and _LABEL.match(name):
        return name
    raise InvalidSpecError(
        f"{shown(name)} is not a valid name: use at most {MAX_LABEL} lower case letters, digits"
        " and '-'",
        field=field,
    )


def checked_object(name: str, *, field: str) -> str:
    """Returns the name if a Kubernetes object can have it.

    Raises:
        InvalidSpecError: it cannot.
    """
    if len(name) <= MAX_OBJECT and _OBJECT.match(name):
        return name
    raise InvalidSpecError(
        f"{shown(name)} is not a valid name of a Kubernetes object: use at most {MAX_OBJECT} lower"
        " case letters, digits, '-' and '.'",
        field=field,
    )
