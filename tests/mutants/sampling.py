"""Which mutants: so many of each part of the code base, by a seed."""

import ast
import importlib.util
import inspect
import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Final

from mutants.operators import Change, mutated, mutations

STRATA: Final[Mapping[str, Sequence[str]]] = {
    "coordinator": ("balanced_source.coordinator",),
    "host": ("balanced_source.host",),
    "assigners": ("balanced_source.assigners",),
    "connectors": ("balanced_source.connectors",),
    "documents": ("balanced_source.documents",),
    "planner": (
        "balanced_source_spark.planner",
        "balanced_source_spark.host_runtime",
        "balanced_source_spark.ends",
        "balanced_source_spark.aligner",
        "balanced_source_spark.admission",
        "balanced_source_spark.executors",
        "balanced_source_spark.options",
        "balanced_source_spark.offset_options",
        "balanced_source_spark.channels",
        "balanced_source_spark.kafka",
    ),
    "runtime": (
        "balanced_source_operator.runtime",
        "balanced_source_operator.controller",
        "balanced_source_operator.resources",
        "balanced_source_adapters",
    ),
}
"""Part of the code base → its modules and packages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MutantSpec:
    """One mutant.

    Attributes:
        stratum: part of the code base.
        module: dotted name.
        file: of the module.
        line: where it is changed.
        text: what is changed.
        function: qualified name of the outermost function around it.
        index: of the changed node.
        change: applied to it.
    """

    stratum: str
    module: str
    file: Path
    line: int
    text: str
    function: str
    index: int
    change: Change

    @property
    def name(self) -> str:
        """Stable over changes elsewhere in the file: the list of survivors is kept by it."""
        source = self.file.read_text().splitlines()[self.line - 1].strip()
        return f"{self.module}:{self.function}: {self.text}: {source}"

    def code(self) -> CodeType:
        """Return the code of the function, changed.

        Raises:
            LookupError: the function is not in the compiled module.
        """
        tree = mutated(ast.parse(self.file.read_text()), self.index, self.change)
        return _code_of(compile(tree, str(self.file), "exec"), self.function)


def sample(count: int, seed: int) -> list[MutantSpec]:
    """Return `count` mutants, the same number from each stratum as far as it has them."""
    rng = random.Random(seed)
    chosen: list[MutantSpec] = []
    for number, (stratum, names) in enumerate(STRATA.items()):
        quota = (count - len(chosen)) // (len(STRATA) - number)
        candidates = [spec for name in names for module in _modules(name) for spec in _specs(stratum, module)]
        chosen += _spread(candidates, quota, rng)
    return chosen


def _spread(candidates: Sequence[MutantSpec], quota: int, rng: random.Random) -> list[MutantSpec]:
    """A sample that takes each kind of change about equally often: there are many constants and few loops."""
    by_kind: dict[str, list[MutantSpec]] = defaultdict(list)
    for spec in candidates:
        by_kind[spec.text.split()[-1] if "→" not in spec.text else "replaced"].append(spec)
    for specs in by_kind.values():
        rng.shuffle(specs)
    chosen: list[MutantSpec] = []
    while len(chosen) < quota and any(by_kind.values()):
        for specs in by_kind.values():
            if specs and len(chosen) < quota:
                chosen.append(specs.pop())
    return chosen


def _modules(name: str) -> Iterator[str]:
    spec = importlib.util.find_spec(name)
    assert spec is not None
    assert spec.origin is not None
    file = Path(spec.origin)
    yield name
    if file.name == "__init__.py":
        for path in sorted(file.parent.rglob("*.py")):
            if path.name != "__init__.py":
                yield ".".join((name, *path.relative_to(file.parent).with_suffix("").parts))


def _specs(stratum: str, module: str) -> Iterator[MutantSpec]:
    file = Path(inspect.getfile(importlib.import_module(module)))
    tree = ast.parse(file.read_text())
    spans = list(_functions(tree, ()))
    for line, text, index, change in mutations(tree):
        function = next((name for name, first, last in spans if first <= line <= last), None)
        if function is not None:
            yield MutantSpec(
                stratum=stratum,
                module=module,
                file=file,
                line=line,
                text=text,
                function=function,
                index=index,
                change=change,
            )


def _functions(node: ast.AST, path: tuple[str, ...]) -> Iterator[tuple[str, int, int]]:
    """Outermost functions with their first and last line."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield ".".join((*path, child.name)), child.lineno, child.end_lineno or child.lineno
        elif isinstance(child, ast.ClassDef):
            yield from _functions(child, (*path, child.name))
        elif isinstance(child, ast.If | ast.Try):
            yield from _functions(child, path)


def _code_of(code: CodeType, qualname: str) -> CodeType:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            if constant.co_qualname == qualname:
                return constant
            if qualname.startswith(constant.co_qualname + "."):
                return _code_of(constant, qualname)
    raise LookupError(f"{qualname} is not in {code.co_filename}")
