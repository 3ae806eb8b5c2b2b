"""Checks that a document can hold a value, and gives it back as it was."""

import math
from collections.abc import Iterator
from typing import Final

from balanced_source.names import is_unicode, shown_value

JSON: Final = "dicts with texts as keys, lists, texts, numbers, bools and None"
"""What a document can hold, for messages."""

_DEPTH: Final = 100
"""Levels of lists and dicts; programs that read JSON give up beyond some depth."""

_BITS: Final = 10_000
"""Of a number; Python writes no longer ones."""


def json_fault(value: object) -> str | None:
    """Return why a document cannot hold a value, such as ``'at' is a datetime``.

    None if it can.
    """
    return next(_faults(value, "", 0), None)


def is_writable(number: int) -> bool:
    """Return whether Python writes a number in digits."""
    return number.bit_length() <= _BITS


def _faults(value: object, place: str, depth: int) -> Iterator[str]:
    if depth > _DEPTH:
        yield f"{place[:_DEPTH]}… is nested too deep"
        return
    match value:
        case list() | tuple():
            for number, member in enumerate(value):
                yield from _faults(member, f"{place}[{number}]", depth + 1)
        case dict():
            for name, member in value.items():
                yield from _faults_of_member(name, member, place, depth)
        case _:
            if why := _fault_of_scalar(value):
                yield f"{place or 'it'} {why}"


def _fault_of_scalar(value: object) -> str | None:
    match value:
        case str():
            return None if is_unicode(value) else f"is {shown_value(value)}, which is not Unicode"
        case int():
            return None if is_writable(value) else "has too many digits"
        case float():
            return None if math.isfinite(value) else f"is {value}"
        case None:
            return None
        case _:
            return f"is a {type(value).__name__}"


def _faults_of_member(name: object, member: object, place: str, depth: int) -> Iterator[str]:
    if not isinstance(name, str):
        yield f"{place or 'it'} has a key that is a {type(name).__name__}"
        return
    if not is_unicode(name):
        yield f"{place or 'it'} has the key {shown_value(name)}, which is not Unicode"
        return
    yield from _faults(member, f"{place}[{name!r}]" if place else repr(name), depth + 1)
