"""JSON that no one expects, and places in JSON to put it."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

from hypothesis import strategies as st

from support.hostile import HOSTILE

Path: TypeAlias = tuple[str | int, ...]

NUMBERS: Final = (
    0,
    1,
    -1,
    -3,
    2**31 - 1,
    2**31,
    2**53 + 1,
    2**63 - 1,
    2**63,
    -(2**63),
    10**40,
    0.5,
    1e308,
    -0.0,
)
DURATIONS: Final = (
    "0",
    "0s",
    "1ms",
    "999ms",
    "1s",
    "3s",
    "10m",
    "87600h",
    "87601h",
    "999999999h",
    "1h1h1h",
    "m",
    "-1s",
)
WORDS: Final = (
    "Earliest",
    "Latest",
    "Committed",
    "Timestamp",
    "Specific",
    "Hash",
    "Drift",
    "None",
    "True",
    "null",
    "a",
)
PATTERNS: Final = (
    "(",
    "(" * 300,
    "(a|a)*b",
    "(a?){250}",
    "[^",
    "a{9999}",
    "a{1,2}{3}",
    "\\",
    ".*",
    "(?i)a",
    "^$",
    "|" * 300,
)
PATHS: Final = (
    "/d/" + "*a" * 10 + "*b",
    "/d/" + "*a" * 500 + "*b",
    "/d/" + "**/" * 12 + "x",
    "/d/" + "**/" * 300 + "x",
    "/d/" + "*a*/" * 100 + "x",
    "s3://d/" + "{a,aa,*}" * 100 + "b",
    "/d/{" + "," * 1000 + "}",
    "/d/[z-a]",
    "/d/[",
    "/d/{",
    "/d/}{",
    "/d/[!]",
)


def deep(depth: int) -> Any:
    """Returns lists within each other."""
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


plain: Final = (
    st.none()
    | st.booleans()
    | st.sampled_from(NUMBERS)
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from((*HOSTILE, *DURATIONS, *WORDS, *PATTERNS, *PATHS))
    | st.text(max_size=12)
)
junk: Final = st.recursive(
    plain,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=8) | st.sampled_from(WORDS), inner, max_size=4)
    ),
    max_leaves=8,
) | st.sampled_from((10, 40, 200)).map(deep)


def places(value: Any, at: Path = ()) -> Iterator[Path]:
    """Yields the path of everything in a JSON value, except of itself."""
    items: Any = ()
    if isinstance(value, Mapping):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    for key, inner in items:
        yield (*at, key)
        yield from places(inner, (*at, key))


def put(value: Any, path: Path, new: Any, *, delete: bool = False) -> Any:
    """Returns a copy with another value at a path, or without it."""
    if not path:
        return new
    key, *rest = path
    if isinstance(value, Mapping):
        copy: Any = dict(value)
    elif isinstance(value, list):
        copy = list(value)
    else:
        return value
    if key not in (copy if isinstance(copy, dict) else range(len(copy))):
        return copy
    if rest or not delete:
        copy[key] = put(copy[key], tuple(rest), new, delete=delete)
    else:
        del copy[key]
    return copy


@st.composite
def broken(
    draw: st.DrawFn, examples: tuple[Any, ...], values: st.SearchStrategy[Any] = junk
) -> Any:
    """Draws an example with up to four changes anywhere in it."""
    value = draw(st.sampled_from(examples))
    for _ in range(draw(st.integers(min_value=0, max_value=4))):
        known = list(places(value))
        if not known:
            return draw(values)
        path = draw(st.sampled_from(known))
        match draw(st.sampled_from(("junk", "junk", "delete", "swap", "key"))):
            case "junk":
                value = put(value, path, draw(values))
            case "delete":
                value = put(value, path, None, delete=True)
            case "swap":
                value = put(value, path, at(value, draw(st.sampled_from(known))))
            case _:
                value = put(value, path, {draw(st.text(max_size=8)): at(value, path)})
    return value


def at(value: Any, path: Path) -> Any:
    """Returns what is at a path."""
    for key in path:
        value = value[key]
    return value
