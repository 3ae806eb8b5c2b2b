"""Strings below assignments, which document attributes and constants."""

import ast
import inspect
import itertools
from collections.abc import Iterator
from types import ModuleType
from typing import Any


def documented(origin: type[Any] | ModuleType) -> Iterator[tuple[str, str]]:
    """Yield name and description of each documented assignment of a class or a module."""
    tree: Any = ast.parse(inspect.getsource(origin))
    body = tree.body if isinstance(origin, ModuleType) else tree.body[0].body
    for node, after in itertools.pairwise(body):
        match node, after:
            case ast.AnnAssign(target=ast.Name(name)), ast.Expr(ast.Constant(str(text))):
                yield name, " ".join(text.split())
            case _:
                pass
