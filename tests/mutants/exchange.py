"""Exchange of the code of functions in a running process."""

import ast
import gc
from collections import defaultdict
from collections.abc import Iterator, Sequence
from types import CodeType, FunctionType
from typing import Final

from mutants.operators import mutated
from mutants.sampling import MutantSpec

CodeKey = tuple[str, str, int]
"""File, qualified name and first line: the name alone does not tell a getter from its setter."""


def key_of(code: CodeType) -> CodeKey:
    """Return what identifies a function in the code base."""
    return code.co_filename, code.co_qualname, code.co_firstlineno


class Exchange:
    """Finds all function objects of the mutated files once, so that forks need not search."""

    def __init__(self, specs: Sequence[MutantSpec]) -> None:
        files = {str(spec.file) for spec in specs}
        self._functions: Final[dict[CodeKey, list[FunctionType]]] = defaultdict(list)
        for thing in gc.get_objects():
            if isinstance(thing, FunctionType) and thing.__code__.co_filename in files:
                self._functions[key_of(thing.__code__)].append(thing)

    def apply(self, spec: MutantSpec) -> None:
        """Give the function of a mutant its changed code.

        Raises:
            LookupError: no such function is loaded.
        """
        self._exchange(spec, mutated(spec.tree, spec.index, spec.change))

    def renew(self, spec: MutantSpec) -> None:
        """Give the function of a mutant its own code, compiled again."""
        self._exchange(spec, spec.tree)

    def _exchange(self, spec: MutantSpec, tree: ast.Module) -> None:
        count = 0
        for code in codes(compile(tree, str(spec.file), "exec")):
            if code.co_qualname == spec.function or code.co_qualname.startswith(
                f"{spec.function}.<locals>."
            ):
                for function in self._functions.get(key_of(code), ()):
                    function.__code__ = code
                    count += 1
        if not count:
            raise LookupError(f"{spec.function} of {spec.file} is not loaded")


def codes(code: CodeType) -> Iterator[CodeType]:
    """Yield all code objects inside of one."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from codes(constant)
