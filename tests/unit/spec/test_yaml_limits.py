"""How much YAML is read, how it becomes JSON, and where something stands in it."""

from typing import Any

import pytest

from balanced_source_operator.contract.yaml_text import (
    MAX_DEPTH,
    MAX_NODES,
    Place,
    YamlError,
    load,
    load_all,
)


def nested(levels: int) -> str:
    return "[" * levels + "]" * levels


def doubled(times: int, extra: int) -> str:
    """A list of aliases that stands for many values: each line has twice as many as the last."""
    lines = ["a0: &a0 [x, x]"]
    lines += [f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, times)]
    return "\n".join([*lines, f"more: [{', '.join(['x'] * extra)}]"])


def size(value: Any) -> int:
    """Values that a text stands for, keys included."""
    if isinstance(value, dict):
        return 1 + sum(1 + size(item) for item in value.values())
    return 1 + sum(map(size, value)) if isinstance(value, list) else 1


def test_a_text_may_have_so_many_levels_and_no_more() -> None:
    assert load(nested(MAX_DEPTH - 1)) is not None
    with pytest.raises(YamlError, match=f"more than {MAX_DEPTH} levels") as found:
        load(nested(MAX_DEPTH))

    assert found.value.place == Place(1, MAX_DEPTH)


def test_levels_beside_each_other_are_not_levels_in_each_other() -> None:
    assert len(load(f"[{', '.join([nested(2)] * 2 * MAX_DEPTH)}]")) == 2 * MAX_DEPTH


def test_a_text_may_stand_for_so_many_values_and_no_more() -> None:
    most = MAX_NODES - size(load(doubled(12, 0)))
    assert size(load(doubled(12, most))) == MAX_NODES
    with pytest.raises(YamlError, match=f"more than {MAX_NODES} values"):
        load(doubled(12, most + 1))


def test_aliases_of_aliases_are_counted_before_they_are_followed() -> None:
    with pytest.raises(YamlError, match="values") as found:
        load(doubled(60, 0))

    assert found.value.place.line < 20


def test_an_alias_of_a_scalar_is_one_value() -> None:
    assert load("a: &word text\nb: [*word, *word]") == {"a": "text", "b": ["text", "text"]}


def test_keys_become_text_as_in_json() -> None:
    assert load("true: a\n0: b\nx: [{no: 1}]") == {"true": "a", "0": "b", "x": [{"false": 1}]}


def test_a_date_is_text() -> None:
    assert load("at: 2026-01-01") == {"at": "2026-01-01"}


def test_a_text_holds_one_document_or_none() -> None:
    assert load("") is None
    assert load("a: 1") == {"a": 1}
    with pytest.raises(YamlError, match=r"expected one document, found 2$"):
        load("a: 1\n---\nb: 1")
    assert [document.value for document in load_all("a: 1\n---\nb: 1")] == [{"a": 1}, {"b": 1}]


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("a: 1\n  b: 2", Place(2, 4), "mapping values are not allowed"),
        ("a: *gone", Place(1, 4), "found undefined alias"),
        ("{[]: 1}", Place(1, 2), "unhashable"),
        ("a: !!int x", Place(1, 1), "invalid literal"),
    ],
)
def test_what_is_not_yaml_is_refused_in_one_line_with_its_place(
    text: str, place: Place, words: str
) -> None:
    with pytest.raises(YamlError, match=words) as found:
        load(text)

    assert str(found.value).startswith("it is not valid YAML: ")
    assert "\n" not in str(found.value)
    assert found.value.place == place


TEXT = """\
list:
- first: 1
- second: 2
twice: 1
map: {a: 1, b: {c: 1, c: 2}}
twice: 2
same: &same {<<: {a: 1}, d: 1}
again: [*same, *same]
7: {x: 1}
"""


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ((), Place(1, 1)),
        (("list",), Place(1, 1)),
        (("list", 0), Place(2, 3)),
        (("list", 1, "second"), Place(3, 3)),
        (("list", 2), Place(1, 1)),
        (("list", "first"), Place(1, 1)),
        (("map", "b", "c"), Place(5, 23)),
        (("twice",), Place(6, 1)),
        ((7, "x"), Place(9, 5)),
    ],
)
def test_a_value_is_placed_at_its_key_and_of_two_at_the_one_that_counts(
    path: tuple[str | int, ...], place: Place
) -> None:
    (document,) = load_all(TEXT)

    assert document.place(path) == place


def test_each_key_that_is_repeated_in_its_map_is_found_once() -> None:
    (document,) = load_all(TEXT)

    assert sorted(document.duplicates()) == [("c", Place(5, 23)), ("twice", Place(6, 1))]


def test_a_key_that_merges_maps_may_be_repeated() -> None:
    (document,) = load_all("a: {<<: {b: 1}, <<: {c: 1}}")

    assert list(document.duplicates()) == []
