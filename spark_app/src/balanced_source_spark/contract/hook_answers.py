"""Checks what planner hooks return, before planning takes it over.

A position that goes back reads records twice, one beyond the end skips records, and a split that is
left out is gone from the Spark checkpoint for good. So a wrong answer ends the query, or counts as
silence of the servers, before an offset is logged.
"""

from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import Any, Final

from balanced_source.api import SplitId
from balanced_source.host.alignment import RecordTime
from balanced_source.host.ends import SplitEnd
from balanced_source.names import shown_value


def check_answer(hook: str, arguments: tuple[Any, ...], found: object) -> None:
    """Check what a hook has returned.

    Raises:
        TypeError, ValueError: it is not what the hook must return. Says what is.
    """
    if hook in _TABLES and not isinstance(found, Mapping):
        raise TypeError(f"it returned a {type(found).__name__}, and a mapping was expected")
    if (check := _CHECKS.get(hook)) is not None:
        check(arguments, found)


def _check_ends(_: tuple[Any, ...], found: Any) -> None:
    for split_id, end in found.items():
        if not isinstance(end, SplitEnd):
            raise TypeError(
                f"it returned {shown_value(end)} for {shown_value(split_id)}: return a SplitEnd"
            )
        if type(end.end) is not int:
            raise TypeError(
                f"the end of {shown_value(split_id)} is {shown_value(end.end)}: return a whole"
                " number"
            )
        if end.first is not None and type(end.first) is not int:
            raise TypeError(
                f"the first position of {shown_value(split_id)} is {shown_value(end.first)}: return"
                " a whole number, or None"
            )


def _check_event_times(_: tuple[Any, ...], found: Any) -> None:
    for split_id, time in found.items():
        if time is not None and not isinstance(time, RecordTime):
            raise TypeError(
                f"it returned {shown_value(time)} for {shown_value(split_id)}: return a RecordTime"
                " or None"
            )


def _check_admitted(arguments: tuple[Any, ...], found: Any) -> None:
    held: Mapping[SplitId, int] = arguments[0]
    reachable: Mapping[SplitId, int] = arguments[1]
    if found.keys() != held.keys():
        wrong = sorted(found.keys() ^ held.keys(), key=repr)
        raise ValueError(
            f"it must return a position for each split that is held, and for no other. {wrong[0]!r}"
            f" is {'missing' if wrong[0] in held else 'not held'}"
        )
    for split_id, position in found.items():
        least = held[split_id]
        most = max(least, reachable.get(split_id, least))
        if type(position) is not int or not least <= position <= most:
            raise ValueError(
                f"the position of {shown_value(split_id)} is {shown_value(position)}: return a"
                f" whole number from {least} to {most}"
            )


def _check_asked_for(arguments: tuple[Any, ...], found: Any) -> None:
    if found is None:
        return
    if not isinstance(found, Collection) or isinstance(found, str):
        raise TypeError(f"it returned a {type(found).__name__}, and a list of splits was expected")
    if unknown := [s for s in found if s not in arguments[0]]:
        raise ValueError(f"it returned {shown_value(unknown[0])}, which it was not asked about")


def _check_scope(_: tuple[Any, ...], found: object) -> None:
    if not isinstance(found, str):
        raise TypeError(f"it returned {shown_value(found)}: return a text")


_TABLES: Final = frozenset({"ends", "event_times", "admit", "with_former"})
"""Hooks that return a mapping."""

_CHECKS: Final[Mapping[str, Callable[[tuple[Any, ...], Any], None]]] = MappingProxyType(
    {
        "ends": _check_ends,
        "event_times": _check_event_times,
        "admit": _check_admitted,
        "asked_for": _check_asked_for,
        "scope_of": _check_scope,
    }
)
