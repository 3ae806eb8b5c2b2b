"""Checks splits where they enter: what they hold is stored, and must be readable ever after."""

from collections.abc import Iterable
from typing import NamedTuple

from balanced_source.api.json_values import JSON, is_writable, json_fault
from balanced_source.api.splits import STOP, SourceSplit, SplitId
from balanced_source.names import is_unicode, shown_value


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
    named = f"{shown_value(split_id)} as the id of a split"
    if (
        not isinstance(split_id, tuple)
        or not split_id
        or not all(isinstance(part, str | int) for part in split_id)
    ):
        return WrongAnswer(named, "ids that are tuples of str and int, and not empty")
    if not all(
        is_unicode(part) if isinstance(part, str) else is_writable(part) for part in split_id
    ):
        return WrongAnswer(
            named,
            "ids that a document can hold: texts in Unicode (the name of a file that is not UTF-8"
            " is none), and numbers of less than 3000 digits",
        )
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
    name, attributes = f"split {shown_value(split.split_id)}", split.attributes()
    if fault := _position_fault("position", split.position, name):
        return fault
    if not attributes:
        return None
    if why := json_fault(attributes):
        return WrongAnswer(f"the attributes of {name}, which are not JSON: {why}", JSON)
    if not isinstance(attributes, dict):
        return WrongAnswer(f"a {type(attributes).__name__} as the attributes of {name}", "a dict")
    if STOP in attributes:
        if attributes[STOP] is None:
            return WrongAnswer(
                f"the attributes of {name}, whose {STOP!r} is None",
                f"attributes without {STOP!r} for a split that has no end",
            )
        return _position_fault("stopping position", attributes[STOP], name)
    return None


def _position_fault(what: str, value: object, name: str) -> WrongAnswer | None:
    if value is None or (type(value) is int and is_writable(value)):
        return None
    return WrongAnswer(f"{what} {shown_value(value)} of {name}", "positions that are int or None")
