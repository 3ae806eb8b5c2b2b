"""Mutations change what they name, and nothing else."""

import ast
from collections.abc import Iterator
from typing import Any

import pytest

from mutants.exchange import codes
from mutants.operators import mutated, mutations

CODE = """
class Base:
    def note(self):
        self.notes = 1


class Example(Base):
    def note(self):
        super().note()
        return self.notes

    @property
    def limit(self):
        return self._limit

    @limit.setter
    def limit(self, value):
        self._limit = value + 1


def chosen(values, least):
    \"\"\"Return those of at least `least`.\"\"\"
    return [
        value
        for value in values
        if value >= least
        and value != 7
    ]


def total(values):
    result = 0
    for value in values:
        if value < 0:
            continue
        result += value
    return result
"""


def variants(text: str, function: str) -> Iterator[dict[str, Any]]:
    """Yield the namespace of each mutant of a function with this text."""
    tree = ast.parse(CODE)
    spans = {
        node.name: range(node.lineno, (node.end_lineno or 0) + 1)
        for node in tree.body
        if hasattr(node, "name")
    }
    for mutation in mutations(tree):
        if mutation.text == text and mutation.lines[0].start in spans[function]:
            namespace: dict[str, Any] = {}
            exec(compile(mutated(tree, mutation.index, mutation.change), "code", "exec"), namespace)  # noqa: S102
            yield namespace


@pytest.mark.parametrize(
    ("text", "function", "expected"),
    [
        ("filter removed", "chosen", [1, 5, 7, 9]),
        ("GtE → Gt", "chosen", [9]),
        ("NotEq → Eq", "chosen", [7]),
        ("and ↔ or", "chosen", [1, 5, 7, 9]),
        ("only the first operand", "chosen", [5, 7, 9]),
        ("return None", "chosen", None),
        ("7 → 8", "chosen", [5, 7, 9]),
    ],
)
def test_a_change_does_what_its_text_says(text: str, function: str, expected: object) -> None:
    (changed,) = variants(text, function)
    assert changed[function]([1, 5, 7, 9], 5) == expected


def test_statements_are_removed_and_conditions_negated() -> None:
    (removed,) = variants("statement removed", "total")
    (negated,) = variants("condition negated", "total")
    (left,) = variants("continue → break", "total")
    assert removed["total"]([1, -2, 3]) == 0
    assert negated["total"]([1, -2, 3]) == -2
    assert left["total"]([1, -2, 3]) == 1


def test_a_method_without_its_call_of_super_keeps_its_free_variables() -> None:
    (changed,) = variants("statement removed", "Example")
    assert changed["Example"].note.__code__.co_freevars == ("__class__",)
    with pytest.raises(AttributeError):
        changed["Example"]().note()


NESTED = """
class Base:
    def get(self):
        return 1


class Example(Base):
    def get(self):
        return super().get()


def counter(least, most):
    def count(value):
        return least and most and value

    return count
"""


@pytest.mark.parametrize("text", ["return None", "only the first operand", "and ↔ or"])
def test_a_function_keeps_the_variables_of_what_is_left_out(text: str) -> None:
    """The objects of functions that are there take no code with fewer of them."""
    tree, own = ast.parse(NESTED), dict[str, Any]()
    exec(compile(tree, "own", "exec"), own)  # noqa: S102 - our own code
    functions = {f.__qualname__: f for f in (own["Example"].get, own["counter"](1, 2))}
    exchanged = set[str]()
    for mutation in mutations(tree):
        made = mutated(tree, mutation.index, mutation.change)
        for code in codes(compile(made, "changed", "exec")) if mutation.text == text else ():
            if (function := functions.get(code.co_qualname)) is not None:
                function.__code__ = code
                exchanged.add(code.co_qualname)

    assert exchanged == functions.keys()


def test_lines_are_those_of_the_change_and_of_its_statement() -> None:
    found = {mutation.text: mutation.lines for mutation in mutations(ast.parse(CODE))}
    lines = CODE.splitlines()
    own, statement = found["NotEq → Eq"]
    assert [lines[n - 1].strip() for n in own] == ["and value != 7"]
    assert statement.start == lines.index("    return [") + 1
    assert [lines[n - 1].strip() for n in found["condition negated"][0]] == ["if value < 0:"]


def texts(code: str) -> list[str]:
    return [mutation.text for mutation in mutations(ast.parse(code))]


def test_a_false_answer_is_not_replaced_by_none() -> None:
    """A condition cannot tell them apart."""
    assert texts("def is_good():\n    return False") == ["False → True"]
    assert texts("def is_good():\n    return True") == ["return None", "True → False"]


def test_what_only_the_type_checker_reads_is_not_changed() -> None:
    assert texts("def run(step):\n    assert step\n    assert_never(step)") == []
    assert texts("def run(step):\n    never(step)") == ["statement removed"]
    assert texts("def run(steps):\n    x = zip(steps, steps, strict=True)") == []
