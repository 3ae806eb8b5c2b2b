"""Patterns of paths, as a shell has them.

`*`, `?`, `[a-z]`, `{a,b}`, and `**` for any number of folders. Pure.
"""

import re
from functools import lru_cache
from typing import Final

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


@lru_cache(maxsize=256)
def compiled(pattern: str) -> "re.Pattern[str]":
    """Return the expression that matches the paths of a pattern.

    A folder stands for all that is in it.

    Raises:
        ValueError: a bracket is not closed, or has a range that is not one.
    """
    body = pattern.rstrip("/") or "/"
    text = _translated(body) + ("(?:/.*)?" if body != "/" else ".*")
    try:
        return re.compile(text, re.DOTALL)
    except re.error as error:
        raise ValueError(f"the pattern {shown(pattern)} is wrong: {error.msg}") from error


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
    return all(level.fullmatch(part) for level, part in parts)


@lru_cache(maxsize=256)
def _levels(pattern: str) -> "tuple[re.Pattern[str], ...]":
    """Return the expressions for the folders of a pattern, up to where any number may follow."""
    found = []
    for part in filter(None, pattern.split("/")):
        # A slash within braces or brackets: what follows is no level of its own.
        if "**" in part or part.count("{") != part.count("}") or part.count("[") != part.count("]"):
            break
        found.append(re.compile(_translated(part), re.DOTALL))
    return tuple(found)


def _translated(pattern: str) -> str:
    found, at = [], 0
    while at < len(pattern):
        piece, at = _piece(pattern, at)
        found.append(piece)
    return "".join(found)


def _piece(pattern: str, at: int) -> tuple[str, int]:
    """Return the expression for what begins at a place, and the place behind it."""
    if pattern.startswith("**/", at):
        return "(?:[^/]+/)*", at + 3
    if pattern.startswith("**", at):
        return ".*", at + 2
    match pattern[at]:
        case "*":
            return "[^/]*", at + 1
        case "?":
            return "[^/]", at + 1
        case "[":
            end = pattern.find("]", at + 2)
            if end < 0:
                raise ValueError(f"the bracket at position {at} is not closed")
            inner = pattern[at + 1 : end]
            sign = "^/" if inner[0] in "!^" else ""
            return f"[{sign}{_escaped_set(inner.lstrip('!^') if sign else inner)}]", end + 1
        case "{":
            end = pattern.find("}", at)
            if end < 0:
                raise ValueError(f"the brace at position {at} is not closed")
            options = "|".join(_translated(option) for option in pattern[at + 1 : end].split(","))
            return f"(?:{options})", end + 1
        case character:
            return re.escape(character), at + 1


def _escaped_set(inner: str) -> str:
    return re.sub(r"([\\\[\]^&~|])", r"\\\1", inner)
