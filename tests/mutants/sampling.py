"""Which mutants: so many of each part of the code base, by a seed."""

import ast
import importlib.util
import inspect
import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mutants.operators import Change, mutations

STRATA: Final[Mapping[str, Sequence[str]]] = {
    "coordinator": ("balanced_source.coordinator",),
    "host": ("balanced_source.host",),
    "assigners": ("balanced_source.assigners",),
    "connectors": ("balanced_source.connectors", "balanced_source.reader"),
    "documents": ("balanced_source.documents",),
    "planner": (
        *(
            f"balanced_source_spark.{name}"
            for name in (
                "aligner",
                "batch_reader",
                "channels",
                "checkpoints",
                "claims",
                "control",
                "driver_calls",
                "driver_metrics",
                "ending",
                "ends",
                "executors",
                "expected_splits",
                "failed_reader",
                "fault_log",
                "former_hosts",
                "group_alignment",
                "host_outputs",
                "host_reporter",
                "host_runtime",
                "instance",
                "journal",
                "journal_of_application",
                "journal_options",
                "journal_stores",
                "kafka",
                "lag_watch",
                "last_words",
                "mounted_options",
                "newest_assignment",
                "option_list",
                "options",
                "partition",
                "place",
                "plain_errors",
                "planner",
                "planner_figures",
                "planner_parts",
                "planning_watch",
                "progress",
                "query_state",
                "remote_rescaling",
                "report_lease",
                "report_retries",
                "rescaling",
                "sample_collector",
                "short_splits",
                "skipped_ranges",
                "spark_version",
                "stopping",
                "stream_reader",
                "task_samples",
                "why_nothing",
                "worker_memory",
            )
        ),
    ),
    "runtime": (
        "balanced_source_operator.runtime",
        "balanced_source_operator.controller",
        "balanced_source_operator.doctor",
        "balanced_source_operator.ending",
        "balanced_source_operator.following",
        "balanced_source_operator.health",
        "balanced_source_operator.host_plan",
        "balanced_source_operator.kafka.clusters",
        "balanced_source_operator.kafka.half",
        "balanced_source_operator.kafka.offsets",
        "balanced_source_operator.kafka.patterns",
        "balanced_source_operator.kafka.translate",
        "balanced_source_operator.kube",
        "balanced_source_operator.leadership",
        "balanced_source_operator.resources",
        "balanced_source_adapters",
    ),
    "sources": (
        "balanced_source_spark.contract",
        "balanced_source_spark.files",
        "balanced_source_spark.hybrid",
        "balanced_source_spark.kinesis",
        "balanced_source_operator.contract",
        "balanced_source_operator.files",
        "balanced_source_operator.hybrid",
        "balanced_source_operator.kinesis",
    ),
}
"""Part of the code base → its modules and packages."""

LEFT_OUT: Final[Mapping[str, str]] = {
    "balanced_source": "what is directly in the package has no decisions: names, words, errors",
    "balanced_source.api": "types",
    "balanced_source.lifecycles": "tables",
    "balanced_source.testing": "for tests of connectors",
    "balanced_source_operator": "how the process starts: what is directly in the package",
    "balanced_source_operator.bundle": "only reads and shows",
    "balanced_source_operator.cli": "only reads and shows",
    "balanced_source_operator.laptop": "starts processes of Spark",
    "balanced_source_operator.kafka.spec": "a schema",
    "balanced_source_operator.page": "only reads and shows",
    "balanced_source_operator.spec": "a schema",
    "balanced_source_operator.validation": "only reads and shows",
    "balanced_source_operator.views": "only reads and shows",
    "balanced_source_spark.application": "starts a session of Spark",
    "balanced_source_spark.data_source": "how Spark's processes start",
    "balanced_source_spark.laptop": "starts a session of Spark",
    "balanced_source_spark.option_names": "a table",
    "balanced_source_spark.precompile": "runs when an image is built",
    "balanced_source_spark.quick_imports": "how Spark's processes start",
    "balanced_source_spark.task_log": "loads the log library",
    "balanced_source_spark.unusable": "a message, for versions of Spark that the tests do not have",
}
"""Other parts of the code base → why the campaign leaves them out.

A package's name here stands only for the modules that are directly in it, if its packages are named
by themselves.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class MutantSpec:
    """One mutant.

    Attributes:
        stratum: part of the code base.
        name: what is changed and where; stable over changes elsewhere in the file.
        kind: of change.
        file: of the module.
        tree: its content, as it was when this process imported it.
        lines: ranges around the change, the smallest first.
        function: qualified name of the outermost function around it.
        index: of the changed node.
        change: applied to it.
    """

    stratum: str
    name: str
    kind: str
    file: Path
    tree: ast.Module
    lines: tuple[range, ...]
    function: str
    index: int
    change: Change


def sample(count: int, seed: int, only: Sequence[str] = ()) -> list[MutantSpec]:
    """Return `count` mutants, equally many from each stratum if it has them, in random order.

    Args:
        count: of mutants.
        seed: of the choice.
        only: strata to take them from; all if empty.
    """
    rng = random.Random(seed)
    chosen: list[MutantSpec] = []
    strata = {name: modules for name, modules in STRATA.items() if name in (only or STRATA)}
    for number, (stratum, names) in enumerate(strata.items()):
        quota = (count - len(chosen)) // (len(strata) - number)
        candidates = [
            spec for name in names for module in _modules(name) for spec in _specs(stratum, module)
        ]
        chosen += _spread(candidates, quota, rng)
    rng.shuffle(chosen)  # a campaign that is stopped has seen something of every stratum
    return chosen


def _spread(candidates: Sequence[MutantSpec], quota: int, rng: random.Random) -> list[MutantSpec]:
    """A sample that takes each kind of change about equally often.

    There are many constants and few loops.
    """
    by_kind: dict[str, list[MutantSpec]] = defaultdict(list)
    for spec in candidates:
        by_kind[spec.kind].append(spec)
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
    text = file.read_text()
    tree, source = ast.parse(text), text.splitlines()
    spans = list(_functions(tree, ()))
    counts = Counter[str]()
    for mutation in mutations(tree):
        line = mutation.lines[0].start
        function = next((name for name, first, last in spans if first <= line <= last), None)
        if function is None:
            continue
        name = f"{module}:{function}: {mutation.text}: {source[line - 1].strip()}"
        counts[name] += 1
        yield MutantSpec(
            stratum=stratum,
            name=name if counts[name] == 1 else f"{name} ({counts[name]})",
            kind=_kind(mutation.text),
            file=file,
            tree=tree,
            lines=mutation.lines,
            function=function,
            index=mutation.index,
            change=mutation.change,
        )


def _kind(text: str) -> str:
    before, arrow, _ = text.partition(" → ")
    if not arrow:
        return text
    if before.isdigit():
        return "number"
    return "name" if before.islower() else "operator"


def _functions(node: ast.AST, path: tuple[str, ...]) -> Iterator[tuple[str, int, int]]:
    """Outermost functions with their first and last line."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield ".".join((*path, child.name)), child.lineno, child.end_lineno or child.lineno
        elif isinstance(child, ast.ClassDef):
            yield from _functions(child, (*path, child.name))
        elif isinstance(child, ast.If | ast.Try):
            yield from _functions(child, path)
