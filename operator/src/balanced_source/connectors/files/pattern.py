"""Patterns of paths, as a shell has them.

`*`, `?`, `[a-z]`, `{a,b}`, and `**` for any number of folders. They become automata: some patterns
would keep Python's `re` busy for hours with one path. Pure.
"""

import re
from functools import lru_cache
from typing import Final

from balanced_source.connectors.automaton import (
    Automaton,
    One,
    Program,
    State,
    Test,
    either,
    repeated,
)
from balanced_source.names import shown

_MAGIC: Final = re.compile(r"[*?\[{]")

HIDDEN: Final = ("_", ".")
"""First characters of the names of files and folders that are not read: markers, and files that are
being written."""


def base_of(pattern: str) -> str:
    """Return the folder, or file, below which everything lies that a pattern matches.

    Listing begins there.
    """
    match = _MAGIC.search(pattern)
    if match is None:
        return pattern.rstrip("/") or "/"
    return pattern[: match.start()].rpartition("/")[0] or "/"


def start_of(pattern: str) -> str:
    """Return the text with which all paths begin that a pattern matches.

    Empty if it says no more than `base_of`.
    """
    match = _MAGIC.search(pattern)
    start = "" if match is None else pattern[: match.start()]
    return "" if start.endswith("/") else start


class PathPattern:
    """Tells which paths a pattern matches; get one by `compiled`."""

    def __init__(self, start: str, rest: Automaton | None) -> None:
        """Take the text that all paths begin with, and what follows it; None: only a folder may."""
        self._start = start
        self._rest = rest

    def matches(self, path: str) -> bool:
        """Return whether the pattern matches the whole path."""
        if not path.startswith(self._start):
            return False
        rest = path[len(self._start) :]
        if self._rest is None:
            return not rest or rest.startswith("/") or self._start.endswith("/")
        return self._rest.matches(rest)


@lru_cache(maxsize=256)
def compiled(pattern: str) -> PathPattern:
    """Return what matches the paths of a pattern; its size is linear in the pattern's length.

    A folder stands for all that is in it.

    Raises:
        ValueError: a bracket is not closed, or has a range that is not one.
    """
    body = pattern.rstrip("/") or "/"
    magic = _MAGIC.search(body)
    if magic is None:
        return PathPattern(body, None)
    start = body[: magic.start()]
    try:
        program = _translated(body, magic.start())
    except _RangeError as error:
        raise ValueError(f"the pattern {shown(pattern)} is wrong: {error}") from error
    inside = repeated((One(_is("/")), *_ANYTHING), 0, 1)
    return PathPattern(start, Automaton(program + inside))


def is_visible(path: str, pattern: str) -> bool:
    """Return whether no part of the path is hidden but those that the pattern names itself."""
    # A million paths are checked: most have no hidden part at all.
    if "/_" not in path and "/." not in path and not path.startswith(HIDDEN):
        return True
    named = len(base_of(pattern).rstrip("/"))
    return not any(part.startswith(HIDDEN) for part in path[named:].split("/"))


def may_hold(folder: str, pattern: str) -> bool:
    """Return whether a folder may hold files that a pattern matches, or is one that it matches.

    Others need not be listed: there may be many of them, and they may not be readable.
    """
    if not is_visible(folder, pattern):
        return False
    parts = zip(_levels(pattern), folder.strip("/").split("/"), strict=False)
    return all(level.matches(part) for level, part in parts)


@lru_cache(maxsize=256)
def _levels(pattern: str) -> tuple[Automaton, ...]:
    """Return what matches the folders of a pattern, up to where any number may follow."""
    found = []
    for part in filter(None, pattern.split("/")):
        if "**" in part:
            break
        try:
            found.append(Automaton(_translated(part)))
        except ValueError:
            # A slash within braces or brackets: what follows is no level of its own.
            break
    return tuple(found)


def _translated(pattern: str, at: int = 0) -> Program:
    found: list[State] = []
    while at < len(pattern):
        piece, at = _piece(pattern, at)
        found.extend(piece)
    return tuple(found)


def _piece(pattern: str, at: int) -> tuple[Program, int]:
    """Return the program for what begins at a place, and the place behind it."""
    if pattern.startswith("**/", at):
        return _FOLDERS, at + 3
    if pattern.startswith("**", at):
        return _ANYTHING, at + 2
    match pattern[at]:
        case "*":
            return _NAME, at + 1
        case "?":
            return (_LETTER,), at + 1
        case "[":
            end = pattern.find("]", at + 2)
            if end < 0:
                raise ValueError(f"the bracket at position {at} is not closed")
            return (One(_set(pattern[at + 1 : end])),), end + 1
        case "{":
            end = pattern.find("}", at)
            if end < 0:
                raise ValueError(f"the brace at position {at} is not closed")
            options = map(_translated, pattern[at + 1 : end].split(","))
            return either(*options), end + 1
        case character:
            return (One(_is(character)),), at + 1


class _RangeError(ValueError):
    """A bracket has a range whose end is before its start."""


def _is(character: str) -> Test:
    return lambda c: c == character


def _set(inner: str) -> Test:
    """Return the test of a bracket: characters and ranges, or all but these and the slash."""
    is_negated = inner[0] in "!^"
    rest, ranges = inner.lstrip("!^") if is_negated else inner, list[tuple[str, str]]()
    while rest:
        size = 3 if rest[1:2] == "-" and len(rest) > 2 else 1  # noqa: PLR2004 - as in "a-z"
        first, last = rest[0], rest[size - 1]
        if last < first:
            raise _RangeError(f"bad character range {first}-{last}")
        ranges.append((first, last))
        rest = rest[size:]
    if is_negated:
        ranges.append(("/", "/"))
    return lambda c: any(first <= c <= last for first, last in ranges) != is_negated


_LETTER: Final = One(lambda c: c != "/")
_NAME: Final = repeated((_LETTER,), 0, None)
_ANYTHING: Final = repeated((One(lambda _: True),), 0, None)
_FOLDERS: Final = repeated((*repeated((_LETTER,), 1, None), One(_is("/"))), 0, None)
