"""The checker of `make chaos` must not trust the code that it checks."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import chaos.checker

pytestmark = pytest.mark.unit

ALLOWED = {"confluent_kafka", "pyarrow", "chaos.checker"}
FILES = sorted(Path(chaos.checker.__file__).parent.glob("*.py"))


def imported(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file.name} has a relative import"
            yield node.module or ""


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.name))
def test_it_imports_nothing_of_this_project(file: Path) -> None:
    foreign = {
        name
        for name in imported(file)
        if name.partition(".")[0] not in sys.stdlib_module_names
        and not any(name == allowed or name.startswith(f"{allowed}.") for allowed in ALLOWED)
    }

    assert not foreign


def test_it_loads_nothing_dynamically() -> None:
    words = ("importlib", "__import__", "exec(", "eval(")

    assert not [(file.name, word) for file in FILES for word in words if word in file.read_text()]
