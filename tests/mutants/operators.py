"""Small changes of a syntax tree, each of which a test should notice."""

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

_COMPARISONS: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}

_ARITHMETIC: Final[dict[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Add,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}

_NAMES: Final = {"min": "max", "max": "min", "any": "all", "all": "any", "sorted": "list"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutation:
    """One change.

    Attributes:
        lines: the smallest range of lines around the change first, then that of its statement.
        text: what is changed, for people.
        index: of the changed node in the order of `ast.walk`.
        change: applied to a copy of the node.
    """

    lines: tuple[range, ...]
    text: str
    index: int
    change: "Change"


Change = Callable[[ast.AST], ast.AST]
"""Returns what takes the place of a copied node."""


def mutations(tree: ast.Module) -> Iterator[Mutation]:
    """Yield every change inside functions."""
    inside = _inside_functions(tree)
    statements = _statements(tree)
    for index, node in enumerate(ast.walk(tree)):
        if id(node) in inside:
            lines = (_lines(node), _lines(statements[id(node)]))
            for text, change in _changes(node):
                yield Mutation(lines=lines, text=text, index=index, change=change)


def mutated(tree: ast.Module, index: int, change: Change) -> ast.Module:
    """Return a copy of the module with one node changed."""
    fresh = copy.deepcopy(tree)
    target = next(node for at, node in enumerate(ast.walk(fresh)) if at == index)
    _keep_variables(fresh, target)
    _Exchange(target, change).visit(fresh)
    return ast.fix_missing_locations(fresh)


def _keep_variables(tree: ast.Module, target: ast.AST) -> None:
    """Repeat a node where it is never executed, at the end of its function.

    A function object takes only code with as many free variables as before, e.g. that of `super()`.
    """
    match target:
        case ast.Return(value=ast.expr() as value):
            kept = [value]
        case ast.comprehension():
            kept = target.ifs
        case ast.BoolOp() | ast.IfExp():
            kept = [target]
        case _:
            return
    around = [
        function
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        and any(part is target for part in ast.walk(function))
    ]
    uses: list[ast.stmt] = [ast.Expr(copy.deepcopy(value)) for value in kept]
    around[-1].body.append(ast.If(test=ast.Constant(value=False), body=uses, orelse=[]))


def _inside_functions(tree: ast.Module) -> set[int]:
    """Ids of the nodes in function bodies.

    Docstrings, annotations, decorators and defaults are left out.
    """
    inside: set[int] = set()
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for statement in function.body:
                if not _is_docstring(statement):
                    inside.update(id(node) for node in ast.walk(statement))
    for node in ast.walk(tree):
        if isinstance(node, ast.AnnAssign):
            inside.difference_update(id(part) for part in ast.walk(node.annotation))
        # asserts are for the type checker; texts of errors may change
        if isinstance(node, ast.Assert | ast.Raise):
            inside.difference_update(id(part) for part in ast.walk(node) if part is not node)
        # so is `strict`, an assert as well
        if isinstance(node, ast.keyword) and node.arg == "strict":
            inside.discard(id(node.value))
        if _is_never(node):
            inside.difference_update(id(part) for part in ast.walk(node))
    return inside


def _statements(tree: ast.Module) -> dict[int, ast.stmt]:
    """Id of each node → the smallest statement around it."""
    found: dict[int, ast.stmt] = {}
    for node in ast.walk(tree):  # outer ones come first
        if isinstance(node, ast.stmt):
            found.update((id(inner), node) for inner in ast.walk(node))
    return found


def _lines(node: ast.AST) -> range:
    """Lines of a node, without those of a body."""
    first, last = getattr(node, "lineno", 0), getattr(node, "end_lineno", 0)
    if isinstance(node, ast.comprehension):
        first, last = node.target.lineno, node.iter.end_lineno or 0
    for name in ("body", "cases"):
        body = getattr(node, name, None)
        if isinstance(body, list) and body:
            start = (
                body[0].pattern.lineno if isinstance(body[0], ast.match_case) else body[0].lineno
            )
            last = max(first, start - 1)
    return range(first, last + 1)


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _is_never(node: ast.AST) -> bool:
    """Whether the node is `assert_never(…)`, which is for the type checker as well."""
    match node:
        case ast.Expr(value=ast.Call(func=ast.Name(id="assert_never"))):
            return True
        case _:
            return False


def _changes(node: ast.AST) -> Iterator[tuple[str, Change]]:
    match node:
        case ast.Compare(ops=[only]) if type(only) in _COMPARISONS:
            yield _comparison(only)
        case ast.BinOp(op=operator) if type(operator) in _ARITHMETIC:
            yield _arithmetic(operator)
        case ast.BoolOp():
            other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            yield "and ↔ or", lambda n: _with(n, op=other)
            # Typed as AST
            yield "only the first operand", lambda n: getattr(n, "values")[0]  # noqa: B009
        case ast.UnaryOp(op=ast.Not()):
            yield "without not", lambda n: getattr(n, "operand")  # noqa: B009
        case ast.Constant(value=bool(value)):
            yield f"{value} → {not value}", lambda n: _with(n, value=not value)
        case ast.Constant(value=int(number)):
            yield f"{number} → {number + 1}", lambda n: _with(n, value=number + 1)
        case ast.Name(id=name) if name in _NAMES:
            yield f"{name} → {_NAMES[name]}", lambda n: _with(n, id=_NAMES[name])
        case ast.If() | ast.IfExp() | ast.While():
            yield "condition negated", lambda n: _with(n, test=_negated(n))
        case ast.Return(value=ast.expr()) if not _is_none_or_false(node.value):
            yield "return None", lambda n: _with(n, value=ast.Constant(None))
        case ast.Expr(value=ast.Call() | ast.Await()) | ast.AugAssign():
            yield "statement removed", _never
        case ast.Break():
            yield "break → continue", lambda _: ast.Continue()
        case ast.Continue():
            yield "continue → break", lambda _: ast.Break()
        case ast.comprehension(ifs=[_, *_]):
            yield "filter removed", lambda n: _with(n, ifs=[])
        case ast.Raise(exc=ast.expr()):
            yield "raise removed", _never
        case _:
            pass


def _comparison(operator: ast.cmpop) -> tuple[str, Change]:
    other = _COMPARISONS[type(operator)]
    return f"{type(operator).__name__} → {other.__name__}", lambda n: _with(n, ops=[other()])


def _arithmetic(operator: ast.operator) -> tuple[str, Change]:
    other = _ARITHMETIC[type(operator)]
    return f"{type(operator).__name__} → {other.__name__}", lambda n: _with(n, op=other())


def _never(statement: ast.AST) -> ast.AST:
    """Keep the statement where it is never executed.

    A function keeps its free variables, e.g. that of `super()`.
    """
    assert isinstance(statement, ast.stmt)
    return ast.If(test=ast.Constant(value=False), body=[statement], orelse=[])


def _is_none_or_false(value: ast.expr | None) -> bool:
    """Whether a caller that takes the value for a condition cannot tell it from None."""
    return isinstance(value, ast.Constant) and (value.value is None or value.value is False)


def _negated(node: ast.AST) -> ast.expr:
    return ast.UnaryOp(ast.Not(), getattr(node, "test"))  # noqa: B009 - typed as AST


def _with(node: ast.AST, **fields: object) -> ast.AST:
    for name, value in fields.items():
        setattr(node, name, value)
    return node


class _Exchange(ast.NodeTransformer):
    """Puts another node in the place of one."""

    def __init__(self, old: ast.AST, change: Change) -> None:
        self._old = old
        self._change = change

    def visit(self, node: ast.AST) -> ast.AST:
        if node is self._old:
            return ast.copy_location(self._change(node), node)
        visited: ast.AST = super().visit(node)
        return visited
