"""Calls a connector's planner hooks such that what they raise by mistake is a sentence.

See `mistakes`.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, Final, TypeVar, cast

from balanced_source.errors import BalancedSourceError, TransientDiscoveryError
from balanced_source_spark.contract.half import AnyHalf
from balanced_source_spark.contract.hook_answers import check_answer
from balanced_source_spark.contract.hooks import PlannerContext, PlannerHooks
from balanced_source_spark.contract.mistakes import ExplainingProxy, explained, mistake
from balanced_source_spark.contract.readers import ReaderHooks, ReadersHalf

ReadT = TypeVar("ReadT")

_ASKING: Final = frozenset({"ends", "event_times"})
"""Hooks that ask servers, in threads of their own. Their first argument is the scope."""


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
    return cast("PlannerHooks", _CheckedHooks(made, connector))


class _CheckedHooks(ExplainingProxy):
    """Passes everything on; hooks that the connector did not override are called directly."""

    def _method(self, name: str, found: Callable[..., Any]) -> Callable[..., Any]:
        # An idle query asks a hundred times a second.
        if getattr(type(self._made), name, None) is getattr(PlannerHooks, name, None):
            return found
        return _checked(found, self._connector, name)


def _checked(hook: Callable[..., Any], connector: str, name: str) -> Callable[..., Any]:
    @wraps(hook)
    def call(*args: Any, **named: Any) -> Any:
        try:
            found = hook(*args, **named)
            check_answer(name, args, found)
        except BalancedSourceError:
            raise
        except (Exception, SystemExit) as error:
            failed = mistake(connector, name, error)
            if name in _ASKING:
                raise TransientDiscoveryError(str(failed), scope=str(args[0])) from error
            raise failed from error
        return found

    return call
