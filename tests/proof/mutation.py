"""Breaking the real code on purpose.

One fragment of one function replaced, for as long as a search lasts.
"""

import contextlib
import functools
import gc
import importlib
import inspect
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, replace
from types import CodeType, FunctionType
from typing import Any

from proof.explorer import Explorer, Report
from proof.lives import live, relive
from proof.values import Setting


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A bug.

    Attributes:
        name: what is wrong, in words.
        rule: the rule that the search must find broken, as violations name it.
        repeats: defects of other systems that it repeats.
        where: ``module:function`` or ``module:Class.method``, below `balanced_source` unless it
            says more.
        old: fragment of its source that is replaced; exactly one is there.
        new: what stands there instead.
        setting: the exploration that must find it.
        is_slow: whether it takes seconds: then only `make proof` looks for it.
        lives: number of random lives that look for it, instead of a search of all states; 0 for the
            search.
    """

    name: str
    rule: str
    repeats: tuple[str, ...] = ()
    where: str
    old: str
    new: str
    setting: Setting
    is_slow: bool = False
    lives: int = 0

    def hunted(self, *, limit: int, shrink: float) -> Report:
        """Look for the bug, with the code broken.

        Args:
            limit: states after which a search ends.
            shrink: seconds to make a life shorter that breaks a rule.
        """
        with self.applied():
            if not self.lives:
                return Explorer(self.setting, limit=limit).run()
            report = Report(setting=self.setting, states=self.lives)
            broken = (
                fate for fate in live(self.setting, range(self.lives)) if fate.problem is not None
            )
            if (fate := next(broken, None)) is not None:
                shorter = relive(fate, shrink)
                report = replace(report, states=fate.seed + 1, problem=shorter.problem)
                report.trace, report.kinds = shorter.trace, shorter.kinds
        return report

    def is_found_by(self, report: Report) -> bool:
        """Returns whether a search has found this bug by the rule that it is expected to break."""
        return report.broken.startswith(self.rule)

    @contextlib.contextmanager
    def applied(self) -> Iterator[None]:
        """The code is broken inside of the context, for everybody who has imported it.

        Raises:
            ValueError: the fragment is not there, or more than once: the code has changed, and so
                must the mutant.
        """
        function = _find(self.where)
        sound = function.__code__
        function.__code__ = self._broken(function)
        _forget()
        try:
            yield
        finally:
            function.__code__ = sound
            _forget()

    def _broken(self, function: FunctionType) -> CodeType:
        source = textwrap.dedent(inspect.getsource(function))
        if (count := source.count(self.old)) != 1:
            raise ValueError(f"mutant {self.name!r}: {self.old!r} is {count} times in {self.where}")
        module = compile(source.replace(self.old, self.new), f"<mutant {self.name}>", "exec")
        return next(
            c
            for c in module.co_consts
            if isinstance(c, CodeType) and c.co_name == function.__name__
        )


def _forget() -> None:
    """Empties the memories of what was decoded or computed, here and in the product.

    An answer from before a mutant would hide it, and one from its time would outlive it.
    """
    # A test of Spark's workers may have set objects aside: those are not listed.
    gc.unfreeze()
    for memory in gc.get_objects():
        # One without a bound holds an object of the process, not an answer.
        if (
            isinstance(memory, functools._lru_cache_wrapper)
            and memory.cache_parameters()["maxsize"]
        ):
            module = memory.__module__ or ""
            if module.startswith(("balanced_source", "proof.", "support.")):
                memory.cache_clear()


def _find(where: str) -> FunctionType:
    module, _, path = where.partition(":")
    package = "" if module.startswith("balanced_source") else "balanced_source."
    found: Any = importlib.import_module(f"{package}{module}")
    for name in path.split("."):
        found = getattr(found, name)
    found = inspect.unwrap(found)  # of what contains its exceptions
    assert isinstance(found, FunctionType)
    return found
