"""Patterns of paths mean what their translation to Python's `re` means, in linear time."""

import random
import re
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from balanced_source.connectors.files import compiled, may_hold
from balanced_source.connectors.files.pattern import _levels

pieces = st.sampled_from(
    [
        *("a", "b", "/", "/", ".", "-", "]", "}", ",", "!", "^", "\\", "(", "+", "|", "$"),
        *("*", "*", "?", "**", "**/", "/**/", "***"),
        *("[ab]", "[!a]", "[^ab]", "[a-b]", "[!b-z]", "[]a]", "[!]", "[--b]", "[.-0]", "[a-]"),
        *("[\\a]", "[&&~|]", "[!^^a]", "[b-a]", "[z--]", "[", "{"),
        *("{a,b}", "{a,b*}/", "{,a}", "{}", "{a/b,[ab]?,**}", "{a,", "b}", "{[a,b]}"),
    ]
)
patterns: Final = st.builds("/{}".format, st.builds("".join, st.lists(pieces, max_size=5)))
paths: Final = st.builds("/{}".format, st.text("ab/.-!", max_size=7))
"""Small, because `re`, which patterns are compared with, backtracks for hours over larger ones."""

HOSTILE: Final = (
    *("/d/" + "*a" * count + "*b" for count in (8, 10, 25, 500)),
    *("/d/" + "**/" * count + "x" for count in (4, 8, 12, 300)),
    "/d/" + "**a" * 300 + "**b",
    "/d/" + "{a,aa,*}" * 100 + "b",
    "/d/" + "*a*/" * 200 + "x",
    "/d/" + "{" + "," * 1000 + "}",
    "/d/" + "*?" * 500,
    "/d/" + "[!b]*" * 200 + "b",
)


@pytest.mark.filterwarnings("ignore:Possible:FutureWarning")
@settings(deadline=None, max_examples=500)
@given(patterns, paths)
def test_a_pattern_means_what_its_translation_means(pattern: str, path: str) -> None:
    try:
        expected = _translation(pattern).fullmatch(path) is not None
    except (ValueError, re.error):
        with pytest.raises(ValueError, match=r"not closed|is wrong: bad character range"):
            compiled(pattern)
    else:
        assert compiled(pattern).matches(path) is expected


@settings(deadline=None)
@given(patterns, paths)
def test_a_folder_of_a_matching_file_is_listed(pattern: str, path: str) -> None:
    try:
        is_match = compiled(pattern).matches(path) and "//" not in path and "/." not in path
    except ValueError:
        return
    folders = [path[:at] for at, character in enumerate(path) if character == "/" and at]
    assert not is_match or all(may_hold(folder, pattern) for folder in folders)


def test_a_minus_after_the_sign_of_a_bracket_is_a_character() -> None:
    """Not the end of a range from the slash, which no bracket with a sign matches."""
    assert not compiled("/[!-b]").matches("/-")
    assert compiled("/[!-b]").matches("/a")


def test_a_folder_of_a_slash_in_a_later_bracket_is_listed() -> None:
    """What the first of two marks closes is not in the same part of the path."""
    assert may_hold("/a/}{", "/a/}{x/y}")
    assert may_hold("/a/][", "/a/][/]b")


@pytest.mark.parametrize("pattern", HOSTILE, ids=range(len(HOSTILE)))
def test_a_match_takes_few_steps_whatever_the_pattern(pattern: str) -> None:
    """Counted, not timed: look-ups in the table of what follows, for names of all kinds."""
    found = compiled(pattern)
    automaton = found._rest
    assert automaton is not None
    automaton._following = table = CountingTable(automaton._following)
    chance = random.Random(7)
    names = ["/d/" + "a" * 250 + "c", "/d/" + "d/" * 120 + "y", "/e/" + "a" * 250]
    names += ["/d/" + "".join(chance.choices("ab/", weights=(8, 1, 1), k=250)) for _ in range(20)]

    for name in names:
        found.matches(name)

    size = len(automaton._program)
    assert size <= 6 * len(pattern)
    assert 0 < table.lookups <= sum(map(len, names)) * (size // 8 + 1)


def test_a_hostile_pattern_still_matches() -> None:
    assert compiled("/d/" + "*a" * 300 + "*b").matches("/d/" + "a" * 300 + "b")
    assert compiled("/d/" + "**/" * 300 + "x").matches("/d/" + "y/" * 100 + "x")


def test_parts_of_a_pattern_are_bounded_too() -> None:
    """Folders are matched by the levels of a pattern."""
    pattern = "/d/" + "*a" * 300 + "*b/c"

    assert not may_hold("/d/" + "a" * 250, pattern)
    assert all(len(level._program) <= 6 * len(pattern) for level in _levels(pattern))


class CountingTable(dict[tuple[int, int], int]):
    """Counts how often it is asked."""

    lookups = 0

    def get(self, key: Any, default: Any = None) -> Any:
        self.lookups += 1
        return super().get(key, default)


def _translation(pattern: str) -> "re.Pattern[str]":
    """Return what patterns were before they became automata."""
    body = pattern.rstrip("/") or "/"
    return re.compile(_translated(body) + ("(?:/.*)?" if body != "/" else ".*"), re.DOTALL)


def _translated(pattern: str) -> str:
    found, at = [], 0
    while at < len(pattern):
        piece, at = _piece(pattern, at)
        found.append(piece)
    return "".join(found)


def _piece(pattern: str, at: int) -> tuple[str, int]:
    for mark, meaning in (("**/", "(?:[^/]+/)*"), ("**", ".*"), ("*", "[^/]*"), ("?", "[^/]")):
        if pattern.startswith(mark, at):
            return meaning, at + len(mark)
    end = pattern.find("]", at + 2) if pattern[at] == "[" else pattern.find("}", at)
    if pattern[at] not in "[{":
        return re.escape(pattern[at]), at + 1
    if end < 0:
        raise ValueError(f"not closed: {pattern}")
    inner = pattern[at + 1 : end]
    if pattern[at] == "{":
        return f"(?:{'|'.join(map(_translated, inner.split(',')))})", end + 1
    sign = "^" if inner[0] in "!^" else ""
    members = re.sub(r"([\\\[\]^&~|])", r"\\\1", inner.lstrip("!^") if sign else inner)
    # Was "[^/…]", which a minus made a range: the one meaning that has changed.
    return f"(?!/)[^{members or '/'}]" if sign else f"[{members}]", end + 1
