"""Which lines of the protocol's code the exploration executes, and why it omits the others."""

import inspect
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final, TypeAlias

from proof.unreached import REASONS

GOAL: Final = 0.97
"""Share of the lines that must be executed or have a reason."""

WATCHED: Final = (
    "balanced_source.coordinator",
    "balanced_source.host",
    "balanced_source.connectors.discovery",
    "balanced_source.connectors.pull.dealing",
    "balanced_source.connectors.pull.enumerator",
    "balanced_source_spark.planner",
    "balanced_source_spark.planner_parts",
    "balanced_source_spark.kafka.hooks",
    "balanced_source_spark.host_runtime",
    "balanced_source_spark.host_reporter",
    "balanced_source_spark.newest_assignment",
)
"""Packages and modules whose lines are counted."""

Line: TypeAlias = tuple[str, int]
"""File below the sources' folder, and number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Lines of one function that were not executed.

    Attributes:
        where: module and qualified name of the function.
        lines: their numbers.
        reason: why; None if there is none.
    """

    where: str
    lines: tuple[int, ...]
    reason: str | None

    def __str__(self) -> str:
        return f"{self.where}: lines {_ranges(self.lines)}: {self.reason or 'no reason is listed'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """All lines accounted for.

    Attributes:
        total: number of lines inside of functions.
        executed: how many of them were executed.
        gaps: the others, by function.
        needless: reasons for functions of which every line was executed.
    """

    total: int
    executed: int
    gaps: tuple[Gap, ...]
    needless: tuple[str, ...]

    @property
    def share(self) -> float:
        """Of lines that were executed or have a reason."""
        excused = sum(len(gap.lines) for gap in self.gaps if gap.reason is not None)
        return (self.executed + excused) / max(1, self.total)

    @property
    def is_enough(self) -> bool:
        """Whether the goal is reached."""
        return self.share >= GOAL


@contextmanager
def recorded(into: set[Line]) -> Iterator[None]:
    """Collects the watched lines that are executed inside of the context, in this thread."""
    left = {code: set(lines) for code, (_, lines) in _functions().items()}

    def called(frame: FrameType, _event: str, _arg: Any) -> Any:
        wanted = left.get(frame.f_code)
        if not wanted:
            return None
        name = frame.f_code.co_filename

        def passed(inner: FrameType, event: str, _arg: Any) -> Any:
            if event == "line" and inner.f_lineno in wanted:
                wanted.discard(inner.f_lineno)
                into.add((name, inner.f_lineno))
            return passed

        return passed

    before = sys.gettrace()
    sys.settrace(called)
    try:
        yield
    finally:
        sys.settrace(before)


def account(executed: Collection[Line]) -> Account:
    """Says what was executed, and what was not."""
    gaps: list[Gap] = []
    total, seen = 0, 0
    for code, (where, lines) in _functions().items():
        missing = tuple(n for n in lines if (code.co_filename, n) not in executed)
        total, seen = total + len(lines), seen + len(lines) - len(missing)
        if missing:
            gaps.append(Gap(where=where, lines=missing, reason=_reason(where)))
    missed = {gap.where for gap in gaps}
    needless = tuple(
        name for name in REASONS if not any(_is_below(where, name) for where in missed)
    )
    return Account(
        total=total,
        executed=seen,
        gaps=tuple(sorted(gaps, key=lambda g: g.where)),
        needless=needless,
    )


def _reason(where: str) -> str | None:
    return next((reason for name, reason in REASONS.items() if _is_below(where, name)), None)


def _is_below(where: str, name: str) -> bool:
    return where == name or where.startswith((f"{name}.", f"{name}:"))


@cache
def _functions() -> Mapping[CodeType, tuple[str, tuple[int, ...]]]:
    """Code of each watched function → its name and its lines."""
    found: dict[CodeType, tuple[str, tuple[int, ...]]] = {}
    for module in _modules():
        path = Path(inspect.getfile(import_module(module)))
        for name, code in _inside(compile(path.read_text(), str(path), "exec"), ""):
            lines = {
                line
                for _, _, line in code.co_lines()
                if line is not None and line != code.co_firstlineno
            }
            found[code] = f"{module}:{name}", tuple(sorted(lines))
    return found


def _modules() -> Iterator[str]:
    for name in WATCHED:
        folder = Path(inspect.getfile(import_module(name)))
        if folder.name != "__init__.py":
            yield name
            continue
        yield from (
            f"{name}.{path.stem}"
            for path in sorted(folder.parent.glob("*.py"))
            if path.stem != "__init__"
        )


def _inside(code: CodeType, prefix: str) -> Iterator[tuple[str, CodeType]]:
    """Functions in a code object, with their qualified names.

    Comprehensions count with their function.
    """
    for inner in code.co_consts:
        if not isinstance(inner, CodeType):
            continue
        is_function = bool(inner.co_flags & inspect.CO_OPTIMIZED)
        name = f"{prefix}{inner.co_name}"
        if is_function and not inner.co_name.startswith("<"):
            yield name, inner
        yield from _inside(inner, prefix if inner.co_name.startswith("<") else f"{name}.")


def _ranges(numbers: tuple[int, ...]) -> str:
    groups: list[list[int]] = []
    for number in numbers:
        if groups and number == groups[-1][-1] + 1:
            groups[-1].append(number)
        else:
            groups.append([number])
    return ", ".join(str(g[0]) if len(g) == 1 else f"{g[0]}–{g[-1]}" for g in groups)
