"""What the pure library may import, as an allow-list.

Import-linter can only say what it must not.
"""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import balanced_source

LIBRARY: Final = Path(balanced_source.__file__).parent
ALLOWED: Final = frozenset(
    {
        "abc",
        "balanced_source",
        "base64",
        "bisect",
        "bz2",
        "collections",
        "contextlib",
        "copy",
        "dataclasses",
        "enum",
        "functools",
        "hashlib",
        "heapq",
        "itertools",
        "json",
        "math",
        "operator",
        "re",
        "types",
        "typing",
        "zlib",
    }
)
"""No I/O, no threads, no clock, no chance, no client.

The suites for authors of connectors are tests, and may more.
"""


def imported(code: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield str(node.module).partition(".")[0]


def test_the_library_imports_nothing_but_values_and_algorithms() -> None:
    files = [
        path for path in LIBRARY.rglob("*.py") if "testing" not in path.relative_to(LIBRARY).parts
    ]
    found = {
        (path.name, name) for path in files for name in imported(path.read_text(encoding="utf-8"))
    }

    assert {pair for pair in found if pair[1] not in ALLOWED} == set()
    assert {name for _, name in found} == ALLOWED, "what is not needed is not allowed either"


def test_imports_inside_functions_count() -> None:
    assert set(imported("def f():\n    import time\n    from os.path import join")) == {
        "time",
        "os",
    }
