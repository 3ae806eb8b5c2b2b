"""Calls a connector's planner hooks such that what they raise by mistake is a sentence.

See `mistakes`.
"""

from collections.abc import Callable
from functools import partial, wraps
from typing import Any, Final, TypeVar, cast

from balanced_source.api import Problem
from balanced_source.errors import BalancedSourceError, TransientDiscoveryError
from balanced_source.reasons import Reason
from balanced_source_adapters.mistakes import explained, mistake
from balanced_source_spark.contract.half import AnyHalf
from balanced_source_spark.contract.hook_answers import check_answer
from balanced_source_spark.contract.hooks import PlannerContext, PlannerHooks
from balanced_source_spark.contract.lost_splits import LostSplits
from balanced_source_spark.contract.mistakes import ExplainingProxy, hanging
from balanced_source_spark.contract.readers import ReaderHooks, ReadersHalf

ReadT = TypeVar("ReadT")

_ASKING: Final = frozenset({"ends", "event_times"})
"""Hooks that ask servers, in threads of their own. Their first argument is the scope."""


_HANGS: Final = "hang"
"""First part of the keys of problems of hooks that do not return."""


def hooks_of(
    half: AnyHalf[ReadT], context: PlannerContext[ReadT], *, connector: str
) -> PlannerHooks:
    """Return the hooks of a connector, such that what they raise by mistake is a sentence.

    An error of a hook that asks servers counts as silence of these servers: it becomes a condition,
    and they are asked again. Any other one ends the query.
    """
    with explained(connector, "hooks"):
        made: object = half.hooks(context)
        # Planning asks for more if tasks get readers.
        expected = ReaderHooks if isinstance(half, ReadersHalf) else PlannerHooks
        if not isinstance(made, expected):
            raise TypeError(
                f"it returned a {type(made).__name__}, and {expected.__name__} were expected"
            )
    skips = None
    if isinstance(half, ReadersHalf):
        skips = partial(_skips, half, context)
    return cast("PlannerHooks", _CheckedHooks(made, connector, context, skips))


def _skips(half: ReadersHalf[Any, Any, Any], context: PlannerContext[Any]) -> bool:
    """What the half says to tasks."""
    return half.may_skip(context.query, context.known_settings())


class _CheckedHooks(ExplainingProxy):
    """Passes everything on; hooks that the connector did not override are called directly.

    Args:
        made: hooks of the connector.
        connector: its kind.
        context: gets the problems that the hooks do not tell themselves.
        skips: answers `may_skip` for hooks that do not; None: it is False.
    """

    def __init__(
        self,
        made: PlannerHooks,
        connector: str,
        context: PlannerContext[Any],
        skips: Callable[[], bool] | None = None,
    ) -> None:
        super().__init__(made, connector)
        self._skips = skips
        self._set_problem = context.set_problem
        self._check_problems = context.check_problems

    def _told_of_losses(self) -> Callable[..., Any]:
        """Return what tells of lost records in place of the hooks."""
        return LostSplits(self._set_problem, self._check_problems, self.may_skip).note

    def _hang_teller(self, method: str) -> Callable[[float | None], None]:
        set_problem, connector = self._set_problem, self._connector

        def tell(seconds: float | None) -> None:
            problem = None
            if seconds is not None:
                text = hanging(connector, method, seconds)
                problem = Problem(reason=Reason.CONNECTOR_BROKEN, message=text)
            set_problem((_HANGS, method), problem)

        return tell

    def _method(self, name: str, found: Callable[..., Any]) -> Callable[..., Any]:
        # An idle query asks a hundred times a second.
        if getattr(type(self._made), name, None) is getattr(PlannerHooks, name, None):
            if name == "may_skip" and self._skips is not None:
                return super()._method(name, _checked(self._skips, name))
            return self._told_of_losses() if name == "note_look" else found
        checked = _checked(found, name)
        if name in _ASKING:
            return _silent(checked, self._connector, name)
        return super()._method(name, checked)


def _checked(hook: Callable[..., Any], name: str) -> Callable[..., Any]:
    @wraps(hook)
    def call(*args: Any, **named: Any) -> Any:
        found = hook(*args, **named)
        check_answer(name, args, found)
        return found

    return call


def _silent(hook: Callable[..., Any], connector: str, name: str) -> Callable[..., Any]:
    """Return a hook whose mistakes count as silence of the servers that it asks."""

    @wraps(hook)
    def call(scope: str, *args: Any) -> Any:
        try:
            return hook(scope, *args)
        except BalancedSourceError:
            raise
        except BaseException as error:
            failed = mistake(connector, name, error)
            raise TransientDiscoveryError(str(failed), scope=scope) from error

    return call
