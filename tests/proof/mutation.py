"""Breaking the real code on purpose: one fragment of one function replaced, for as long as a search lasts."""

import contextlib
import importlib
import inspect
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

from proof.values import Setting


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A bug.

    Attributes:
        name: what is wrong, in words.
        breaks: the rules of the protocol and the defects of other systems that it repeats.
        where: ``module:function`` or ``module:Class.method``.
        old: fragment of its source that is replaced; exactly one is there.
        new: what stands there instead.
        setting: the exploration that must find it.
    """

    name: str
    breaks: tuple[str, ...]
    where: str
    old: str
    new: str
    setting: Setting

    @contextlib.contextmanager
    def applied(self) -> Iterator[None]:
        """The code is broken inside of the context, for everybody who has imported it.

        Raises:
            ValueError: the fragment is not there, or more than once: the code has changed, and so must the mutant.
        """
        function = _find(self.where)
        sound = function.__code__
        function.__code__ = self._broken(function)
        try:
            yield
        finally:
            function.__code__ = sound

    def _broken(self, function: FunctionType) -> CodeType:
        source = textwrap.dedent(inspect.getsource(function))
        if (count := source.count(self.old)) != 1:
            raise ValueError(f"mutant {self.name!r}: {self.old!r} is {count} times in {self.where}")
        module = compile(source.replace(self.old, self.new), f"<mutant {self.name}>", "exec")
        return next(c for c in module.co_consts if isinstance(c, CodeType) and c.co_name == function.__name__)


def _find(where: str) -> FunctionType:
    module, _, path = where.partition(":")
    found: Any = importlib.import_module(f"balanced_source.{module}")
    for name in path.split("."):
        found = getattr(found, name)
    assert isinstance(found, FunctionType)
    return found
