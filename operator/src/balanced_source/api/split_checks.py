"""Checks splits where they enter: what they hold is stored, and must stay readable."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from balanced_source.api.json_values import JSON, is_writable, json_fault
from balanced_source.api.splits import STOP, SourceSplit, SplitId
from balanced_source.names import is_unicode, shown_value

_TUPLES: Final = "ids that are tuples of str and int, and not empty"

_WRITABLE: Final = (
    "ids that a document can hold: texts in Unicode (the name of a file that is not UTF-8 is none),"
    " and numbers of less than 3000 digits"
)


class WrongAnswer(NamedTuple):
    """What is wrong with what a connector has made.

    Attributes:
        found: what it is, or holds.
        expected: what it must be instead.
    """

    found: str
    expected: str


def id_fault(split_id: object) -> WrongAnswer | None:
    """Return what is wrong with the id of a split; None if nothing is."""
    if not isinstance(split_id, tuple) or not split_id:
        return _wrong_id(split_id, _TUPLES)
    # A loop, and nothing made for messages yet: a source may have 100,000 splits.
    for part in split_id:
        if isinstance(part, str):
            if not part.isascii() and not is_unicode(part):
                return _wrong_id(split_id, _WRITABLE)
        elif not isinstance(part, int):
            return _wrong_id(split_id, _TUPLES)
        elif not is_writable(part):
            return _wrong_id(split_id, _WRITABLE)
    return None


def shapes_fault(ids: Iterable[SplitId]) -> WrongAnswer | None:
    """Return what is wrong with ids beside each other: they are sorted.

    Python cannot compare a text with a number.
    """
    examples = {tuple(map(type, split_id)): split_id for split_id in ids}
    if len(examples) < 2:  # noqa: PLR2004 - two of them differ
        return None
    one, other, *_ = examples.values()
    return WrongAnswer(
        f"the ids {shown_value(one)} and {shown_value(other)}",
        "ids of the same length, with the same type at each place",
    )


def split_fault(split: object) -> WrongAnswer | None:
    """Return what is wrong with position and attributes of a split; None if nothing is."""
    if not isinstance(split, SourceSplit):
        return WrongAnswer(f"a {type(split).__name__} among the splits", "splits alone")
    if not _is_position(split.position):
        return _wrong_position("position", split.position, split)
    attributes = split.attributes()
    return _attributes_fault(split, attributes) if attributes else None


def _attributes_fault(split: SourceSplit, attributes: object) -> WrongAnswer | None:
    if why := json_fault(attributes):
        return WrongAnswer(f"the attributes of {_named(split)}, which are not JSON: {why}", JSON)
    if not isinstance(attributes, dict):
        found = f"a {type(attributes).__name__} as the attributes of {_named(split)}"
        return WrongAnswer(found, "a dict")
    stop = attributes.get(STOP)
    if stop is None and STOP in attributes:
        return WrongAnswer(
            f"the attributes of {_named(split)}, whose {STOP!r} is None",
            f"attributes without {STOP!r} for a split that has no end",
        )
    return None if _is_position(stop) else _wrong_position("stopping position", stop, split)


def _is_position(value: object) -> bool:
    return value is None or (type(value) is int and is_writable(value))


def _wrong_position(what: str, value: object, split: SourceSplit) -> WrongAnswer:
    found = f"{what} {shown_value(value)} of {_named(split)}"
    return WrongAnswer(found, "positions that are int or None")


def _wrong_id(split_id: object, expected: str) -> WrongAnswer:
    return WrongAnswer(f"{shown_value(split_id)} as the id of a split", expected)


def _named(split: SourceSplit) -> str:
    return f"split {shown_value(split.split_id)}"
