"""Find ``@pytest.mark.scenario("C3", …)`` in the sources of the tests, without importing them."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

TESTS = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Found:
    """A test of a scenario.

    Attributes:
        scenario: its id.
        test: path below the tests and name of the function.
        asserts: first line of the test's docstring.
    """

    scenario: str
    test: str
    asserts: str


def collect(folder: Path = TESTS) -> list[Found]:
    """All marked tests below `folder`, sorted.

    Raises:
        ValueError: a marked test has no docstring.
    """
    paths = sorted(folder.rglob("test_*.py"))
    return sorted(
        found for path in paths for found in _of_file(path, str(path.relative_to(folder)))
    )


def _of_file(path: Path, name: str) -> Iterator[Found]:
    text = path.read_text(encoding="utf-8")
    if ".scenario(" not in text:
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (ids := _ids(node)):
            says = " ".join((ast.get_docstring(node) or "").split())
            if not says:
                raise ValueError(
                    f"{name}::{node.name} needs a docstring: what is asserted, in one line"
                )
            for scenario in ids:
                yield Found(scenario=scenario, test=f"{name}::{node.name}", asserts=says)


def _ids(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    """Ids in the function's decorators, those of single parameters included."""
    calls = [
        node
        for decorator in function.decorator_list
        for node in ast.walk(decorator)
        if isinstance(node, ast.Call)
    ]
    marks = [
        call
        for call in calls
        if isinstance(call.func, ast.Attribute) and call.func.attr == "scenario"
    ]
    ids = (
        argument.value
        for mark in marks
        for argument in mark.args
        if isinstance(argument, ast.Constant)
    )
    return sorted({str(value) for value in ids})
