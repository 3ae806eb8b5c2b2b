"""Topic patterns: the meaning of Python's `re` on what both understand, in linear time.

All else is refused.
"""

import random
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from balanced_source.connectors.kafka.pattern import MAX_STATES, PatternError, compiled

atoms = st.sampled_from(
    [
        "a",
        "b",
        ".",
        "[ab]",
        "[^a]",
        r"\d",
        r"\w",
        r"\.",
        "[a-c.-]",
        "-",
        r"[\d_]",
        r"[\.a]",
        r"[^\-b]",
    ]
)
repeats = st.sampled_from(["", "", "*", "+", "?", "{2}", "{1,}", "{0,2}", "*?", "+?"])
patterns = st.recursive(
    st.builds("".join, st.lists(st.builds("{}{}".format, atoms, repeats), max_size=3)),
    lambda inner: (
        st.builds("({}){}".format, inner, repeats)
        | st.builds("(?:{}|{}){}".format, inner, inner, repeats)
    ),
    max_leaves=3,
)
"""Small, and so are the names: `re`, which they are compared with, backtracks for hours over larger
ones."""


@settings(deadline=None)
@given(patterns, st.text("abc.-_1", max_size=5))
def test_a_pattern_matches_like_a_regular_expression_of_python(pattern: str, name: str) -> None:
    assert compiled(pattern).matches(name) == (re.fullmatch(pattern, name) is not None)


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("orders", ["orders"], ["orders-1", "my-orders", ""]),
        (r"v[\d_]+", ["v1", "v1_2", "v_"], ["v", "v-", "v]"]),
        ("a{0,2}b", ["b", "ab", "aab"], ["aaab", "a", ""]),
        ("(ab){1,3}c", ["abc", "ababc", "abababc"], ["c", "ababababc", "abab"]),
        ("^orders-.*$", ["orders-", "orders-1"], ["orders"]),
        (
            r"(eu|us)\.orders\.v[0-9]{1,2}",
            ["eu.orders.v1", "us.orders.v12"],
            ["eu-orders-v1", "eu.orders.v123"],
        ),
        (r"a\$", ["a$"], ["a"]),
        ("|x", ["", "x"], ["y"]),
        ("[]a]+", ["]a", "a"], ["b"]),
        ("[^-]+", ["abc"], ["a-c"]),
        (r"[\.\-a]+", [".", "-a."], ["\\", "b"]),
        (r"[\+-9]+", ["+", "-", "9"], ["*", ":"]),
        ("[a-]+b", ["ab", "-b", "a-ab"], ["b", "]b", "cb"]),
        ("[-a]", ["-", "a"], ["b", "-a"]),
        (r"[+-\-]", ["+", ",", "-"], [".", "*"]),
    ],
)
def test_the_whole_name_must_match(pattern: str, yes: list[str], no: list[str]) -> None:
    assert all(compiled(pattern).matches(name) for name in yes)
    assert not any(compiled(pattern).matches(name) for name in no)


@pytest.mark.parametrize(
    "pattern", ["(a|a)*b", "(a*)*b", "(a+)+b", ".*.*.*.*.*.*x", "(a?){50}a{50}"]
)
def test_patterns_that_defeat_backtracking_are_matched(pattern: str) -> None:
    """Python's `re` would take years for some of these; the suite's own timeout is the judge."""
    assert not compiled(pattern).matches("a" * 249)


@pytest.mark.parametrize(
    ("pattern", "says"),
    [
        ("(", "without )"),
        ("a)", "unbalanced"),
        ("[a", "without ]"),
        ("*a", "nothing to repeat"),
        ("a**", "repetition of a repetition"),
        ("a++", "repetition of a repetition"),
        (r"(a)\1", "back references"),
        ("(?=a)", "look-around"),
        ("(?i)a", "flags"),
        (r"\bx", "not understood"),
        ("a^b", "whole name"),
        ("a{3,2}", "repetitions"),
        ("a{x}", "begins a repetition"),
        ("a{1001}", "repetitions"),
        ("(" * 33 + "a" + ")" * 33, "more than 32 groups within each other"),
        ("(" * 200 + "a" + ")" * 200, "more than 32 groups within each other"),
        ("a{513}", "too many"),
        ("(a?){257}", "too"),
        ("[a-z]" * 103, "at most 512 are allowed"),
        ("(a{900}){900}", "too many"),
        ("[z-a]", "no range"),
        ("a\\", "at the end"),
    ],
)
def test_anything_else_is_refused_with_the_place(pattern: str, says: str) -> None:
    with pytest.raises(
        PatternError, match=r"at character \d+|the pattern has \d+ characters"
    ) as caught:
        compiled(pattern)

    assert says in str(caught.value)


HOSTILE = [
    "(a?){250}",
    "(((a{0,6}){0,6}){0,6})",
    "(.?){250}",
    "(a|b)*a(a|b){120}",
    "((.?){15}){15}",
    "(.*){80}x",
]


@pytest.mark.parametrize("pattern", HOSTILE)
def test_a_match_takes_few_steps_whatever_the_pattern(pattern: str) -> None:
    """Counted, not timed.

    Look-ups in the table of what follows, for 50 names that nothing is known of yet.
    """
    found = compiled(pattern)
    chance = random.Random(7)
    names = ["".join(chance.choices("abc", k=249)) for _ in range(50)]
    table = CountingTable(found._following)
    found._following = table

    for name in names:
        found.matches(name)

    assert table.lookups <= len(names) * 249 * (MAX_STATES // 8 + 1)
    assert len(table) <= 256 * (MAX_STATES // 8 + 1)


class CountingTable(dict[tuple[int, int], int]):
    """Counts how often it is asked."""

    lookups = 0

    def get(self, key: Any, default: Any = None) -> Any:
        self.lookups += 1
        return super().get(key, default)


@pytest.mark.parametrize(
    ("pattern", "place"),
    [
        ("orders-[9-0]", "at character 9 of 'orders-[9-0]': 9-0 is no range"),
        ("orders-[0-9", "at character 8 of 'orders-[0-9': [ without ]"),
        ("a{2,1}", "at character 2 of 'a{2,1}'"),
        ("a{1001}", "at character 2 of 'a{1001}'"),
        ("a{5,1001}", "at character 2 of 'a{5,1001}': repetitions go from 0 to 1000"),
        ("a[b-", "at character 2 of 'a[b-': [ without ]"),
        ("ab{513}", "at character 2 of 'ab{513}': too many repetitions"),
        ("ab{0,513}", "at character 2 of 'ab{0,513}': too many repetitions"),
        ("ab{513,}", "at character 2 of 'ab{513,}': too many repetitions"),
        ("a{2", "at character 2 of 'a{2': { begins a repetition"),
        ("a{2,x}", "at character 2 of 'a{2,x}': { begins a repetition"),
        ("a{²}", "at character 2 of 'a{²}': { begins a repetition"),
        ("a{1,²}", "at character 2 of 'a{1,²}': { begins a repetition"),
        ("ab(cd", "at character 3 of 'ab(cd': ( without )"),
        ("ab(?=c)", "at character 3 of 'ab(?=c)': only plain groups"),
        ("(" * 33 + ")" * 33, f"at character 33 of '{'(' * 33 + ')' * 33}': more than 32 groups"),
        ("ab)c", "at character 3 of 'ab)c': unbalanced )"),
        ("a|*b", "at character 3 of 'a|*b': nothing to repeat"),
        ("a|{2}", "at character 3 of 'a|{2}': nothing to repeat"),
        ("ab*+", "at character 4 of 'ab*+': a repetition of a repetition"),
        ("ab^c", "at character 3 of 'ab^c': ^ in the middle"),
        ("a{257}b{256}", "at character 13 of 'a{257}b{256}': the pattern is too large"),
        ("(a{300}|b{300})", "at character 15 of '(a{300}|b{300})': the pattern is too large"),
        ("a$b", "at character 2 of 'a$b': $ in the middle"),
        (r"ab\1", r"at character 3 of 'ab\\1': \1 is not understood"),
        ("ab\\", r"at character 4 of 'ab\\': \ at the end"),
        ("a[b-\\", r"at character 6 of 'a[b-\\': it ends too early"),
    ],
)
def test_the_place_of_a_mistake_is_that_of_its_first_character(pattern: str, place: str) -> None:
    with pytest.raises(PatternError) as caught:
        compiled(pattern)

    assert str(caught.value).startswith(place)


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("(" * 32 + "a" + ")" * 32, "a"),
        ("(a)" * 100, "a" * 100),
        ("a{512}", "a" * 512),
        ("a{0,256}", "a" * 256),
        ("(){1000}", ""),
        ("a" * 512, "a" * 512),
        ("a{256}b{256}", "a" * 256 + "b" * 256),
    ],
)
def test_a_pattern_at_a_limit_is_accepted(pattern: str, name: str) -> None:
    assert compiled(pattern).matches(name)
    assert not compiled(pattern).matches(name + "a")


def test_what_a_pattern_remembers_of_names_is_bounded() -> None:
    """Whoever may create topics decides which characters and names there are."""
    found = compiled("[^x]*a?[^x]{3}")
    characters = [chr(0x4E00 + number) for number in range(5000)]

    for first in range(0, 5000, 10):
        assert found.matches("".join(characters[first : first + 10]))

    assert len(found._reading) <= 4096
    assert not found.matches("x")


def test_what_a_pattern_remembers_of_its_states_is_bounded() -> None:
    """Each name of twenty letters leads such a pattern into other sets of states."""
    found, chance = compiled("(a|b)*a(a|b){20}"), random.Random(3)

    for _ in range(40):
        found.matches("".join(chance.choices("ab", k=249)))

    nodes = [found._first, *found._nodes.values()]
    assert len(nodes) <= 4097
    assert sum(map(len, nodes)) <= 4096
    assert len(found._following) <= 4096
    assert found.matches("a" * 21)
    assert not found.matches("b" + "b" * 20)


def test_what_a_pattern_remembers_of_groups_of_its_states_is_bounded() -> None:
    """Eight states that read the same letters have 255 combinations, and there are many groups."""
    found, chance = compiled("(a|b)*a[ab]{200}"), random.Random(3)

    for _ in range(40):
        name = "".join(chance.choices("ab", k=249))
        assert found.matches(name) == (name[-201] == "a")

    assert len(found._following) <= 4096
