"""Hold the code to its budget of lengths, and one class name to one meaning.

`make lint` fails otherwise.

The median and the ninetieth percentile are those of the bodies of functions; no function is longer
than its limit with parameters and docstring. The budget is in `LIMITS`; docs/development.md says
why.
"""

import ast
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
PRODUCT, OTHERS = ("operator/src", "spark_app/src"), ("tests", "benchmarks", "examples", ".ci")


class Limits(NamedTuple):
    """Lines that half of all, nine tenths of all, and each one may have at most."""

    median: int
    p90: int | None
    each: int


RIDDLES = {"told", "said", "mine", "life"}
"""Names in the product that do not say what they hold; docs/development.md."""

LIMITS = {"function": Limits(8, 30, 60), "file": Limits(150, None, 500)}


def main() -> int:
    """Print what is over the budget; the exit code is 1 if anything is."""
    functions = [(length, where) for file in _files(PRODUCT) for length, where in _functions(file)]
    files = [(_lines(file), str(file.relative_to(ROOT))) for file in _files(PRODUCT)]
    others = [(_lines(file), str(file.relative_to(ROOT))) for file in _files(OTHERS)]
    whole = [found for file in _files((*PRODUCT, *OTHERS)) for found in _whole_functions(file)]
    lengths = [
        *_over("function", functions),
        *_over("file", files),
        *_too_long("file", others),
        *_too_long("function", whole),
    ]
    complaints = [*lengths, *_named_twice(), *_riddles()]
    print(
        "\n".join(complaints)
        or f"structure: {len(functions)} functions in {len(files)} files keep the budget"
    )
    return 1 if complaints else 0


def _files(folders: tuple[str, ...]) -> Iterator[Path]:
    for folder in folders:
        yield from sorted((ROOT / folder).rglob("*.py"))


def _lines(file: Path) -> int:
    return file.read_text().count("\n")


def _functions(file: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body[1:] if ast.get_docstring(node) else node.body
            length = (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0
            yield length, f"{file.relative_to(ROOT)}:{node.lineno} {node.name}"


def _whole_functions(file: Path) -> Iterator[tuple[int, str]]:
    """Yield the lengths of functions with their parameters and docstrings."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or 0) - node.lineno + 1
            yield length, f"{file.relative_to(ROOT)}:{node.lineno} {node.name}"


def _over(kind: str, found: list[tuple[int, str]]) -> Iterator[str]:
    yield from _too_long(kind, found)
    limits, lengths = LIMITS[kind], sorted(length for length, _ in found)
    if (median := statistics.median(lengths)) > limits.median:
        yield f"half of all {kind}s have more than {median} lines; the budget is {limits.median}"
    if limits.p90 and (p90 := lengths[int(0.9 * len(lengths))]) > limits.p90:
        yield f"a tenth of all {kind}s have more than {p90} lines; the budget is {limits.p90}"


def _too_long(kind: str, found: list[tuple[int, str]]) -> Iterator[str]:
    for length, where in found:
        if length > LIMITS[kind].each:
            yield f"{where}: {length} lines; a {kind} has {LIMITS[kind].each} at most"


def _named_twice() -> Iterator[str]:
    where = defaultdict[str, list[str]](list)
    for file in _files(PRODUCT):
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                where[node.name].append(f"{file.relative_to(ROOT)}:{node.lineno}")
    for name, places in where.items():
        if len(places) > 1:
            yield f"class {name} has more than one meaning: {', '.join(places)}"


def _riddles() -> Iterator[str]:
    for file in _files(PRODUCT):
        for node in ast.walk(ast.parse(file.read_text())):
            if (name := _given_name(node)).strip("_").lower() in RIDDLES:
                line = getattr(node, "lineno", 0)
                yield (
                    f"{file.relative_to(ROOT)}:{line}: {name} does not say what it holds: name the"
                    " thing"
                )


def _given_name(node: ast.AST) -> str:
    """Return the name that a node gives to something; empty for all others."""
    match node:
        case (
            ast.Name(id=name, ctx=ast.Store())
            | ast.Attribute(attr=name, ctx=ast.Store())
            | ast.arg(arg=name)
        ):
            return name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return name
        case _:
            return ""


if __name__ == "__main__":
    sys.exit(main())
